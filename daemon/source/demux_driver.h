// Parts of the kinds of demux that their tests reach: repeated pictures, the memory of an RTSP
// camera, the clock of sender reports.
#ifndef FRAMED_DAEMON_SOURCE_DEMUX_DRIVER_H
#define FRAMED_DAEMON_SOURCE_DEMUX_DRIVER_H

#include "daemon/rtsp/session.h"
#include "daemon/source/demux.h"

// --- demux_rtsp: repeated pictures: many servers begin each session with a cached second of video,
// even if the camera behind them is dead.
//
// A picture of an earlier session is old if it arrives faster than its timestamp says, or within
// the length of a session that sent nothing new and fell silent. Pictures that arrive at their pace
// are live, also from servers that play a clip from the start for each client; the speed of reading
// ready pictures is no pace. The first old picture looks like such a clip's and counts as old. A
// picture with missing packets is never new: its bytes are not the sender's.

enum { REPLAY_UNITS = 1024 }; // more than servers cache

// State of one camera, over its sessions; zeroed at first.
struct replay_memory {
    uint64_t hashes[REPLAY_UNITS]; // of the last units of all sessions; a ring
    uint64_t n;                    // units so far
    int64_t silent_ns; // length of the last session, if it sent nothing new and fell silent; 0: no
};

// State of one session; zeroed at first.
struct replay {
    bool live;      // further units are not old
    bool news;      // a unit arrived that no earlier session had sent
    unsigned units; // so far
    int64_t first_ns, last_ns, last_time_ns;
};

// Call for each unit in turn. Returns true if it is old. `usual_ns`: the camera's interval; 0:
// unknown.
bool replay_add(struct replay *, struct replay_memory *, const struct rtsp_unit *,
                int64_t usual_ns);
// Call at the end of a session. `silent`: it was ended because no more units arrived.
void replay_end(const struct replay *, struct replay_memory *, bool silent);

// --- demux_libav: the wall clock of an RTSP camera's packets, from its sender reports

struct sender_clock { // ready when zeroed
    bool seen;        // a report has come
    bool is_next;     // the time that comes with a packet belongs to the next one
    bool has_next;
    int64_t next_ns;
};

// Call for each packet in turn. `report_ns`: the time since 1970 that came with it (INT64_MIN:
// none); `start_ns`: the time of pts 0 by the first report. Returns the packet's own time since
// 1970; INT64_MIN before the first report.
int64_t sender_clock_read(struct sender_clock *, int64_t report_ns, int64_t start_ns,
                          int64_t pts_ns);

// --- demux_rtsp: the memory of a camera for its next connections. The owner keeps it as long as
// the camera; only the thread that uses the camera's demux uses it. Ready when zeroed.

struct demux_memory {
    struct demux_network network; // counts of past sessions
    struct rtsp_memory rtsp;
    struct replay_memory replay;
    bool accepted;       // the last try with user and password delivered a picture
    bool answers;        // it has answered requests while playing
    bool deaf;           // a connection that answered none after PLAY was replaced
    int64_t connect_ns;  // from connecting to the answer to PLAY, the last time
    int64_t answer_ns;   // how long to wait for an answer; 0: the default
    int64_t silence_ns;  // how long to wait for a picture while the interval is unknown or the
                         // camera answers requests; 0: the default
    int64_t interval_ns; // mean interval of its pictures, by their timestamps
    int intervals;       // number of intervals in the mean, up to a limit
};

// How long an input of unknown picture interval may be silent.
static const int64_t DEMUX_PATIENCE_NS = 5 * INT64_C(1000000000);

#endif
