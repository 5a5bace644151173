// Reads packets of one camera: H.264, H.265 and JPEG over RTSP with our own client (demux_rtsp.c),
// everything else with libavformat (demux_libav.c). Steps that may block have their own deadlines
// and end early on *stop. One thread (the camera's) uses a demux.
#ifndef FRAMED_DAEMON_SOURCE_DEMUX_H
#define FRAMED_DAEMON_SOURCE_DEMUX_H

#include <stdatomic.h>

#include "config/config.h"
#include "config/url.h"
#include "daemon/base/stage_watch.h"
#include "daemon/rtsp/session.h"
#include "kernels/image.h"

struct AVPacket;
struct AVCodecParameters;
struct demux_driver;
struct demux_memory;
struct url_input;

struct packet {          // of one picture
    struct AVPacket *av; // the demux's own; valid until the next demux_read or demux_close
    size_t bytes;        // size of av
    int64_t pts_ns;      // INT64_MIN: the stream has none
    int64_t received_ns; // CLOCK_MONOTONIC of its first network packet; of a file: when read
    int64_t arrived_ns;  // CLOCK_MONOTONIC of its last network packet; of a file: received_ns
    int64_t capture_ns;  // since 1970
    bool capture_clock;  // capture_ns comes from a sender report
    bool keyframe;       // according to the demuxer
    bool disposable;     // no other picture references it, as far as the demuxer can see
    bool damaged;        // a part of it is missing; AV_PKT_FLAG_CORRUPT is set, too
    bool reference_lost; // earlier pictures are missing that it may reference
    bool old;            // an earlier connection sent it: it is decoded, but not shown
    bool hole;           // RTP packets are missing in it or before it, since the previous packet
    bool waited;         // the demux waited for it; else it may have been ready before received_ns
    bool guessed;        // pts_ns is a guess: the stream's own time is wrong
};

// RTP statistics of all connections of the camera; packets are RTP packets.
struct demux_network {
    const char *transport;   // "tcp", "udp", "multicast"; NULL: libavformat reads this input
    const char *picture_end; // how the end of a picture is detected (picture_end_name)
    uint64_t packets, lost;  // ours received in time, and ours lost
    uint64_t reordered;      // part of `packets`: arrived after a later one
    uint64_t late;           // part of `lost`: arrived after they were given up
    uint64_t duplicate;      // arrived twice
    uint64_t foreign;        // not of the stream
    uint64_t restarts;       // of the sender, with new numbers
    uint64_t overruns;       // packets dropped by this box's kernel; counted in `lost`, too
    int64_t arrival_ns;      // from a picture's first packet to its last, on average
};

enum { DEMUX_WHY_MAX = 512 }; // bytes for a sentence on why an input failed, with a fingerprint

// The input and what is known of its video track, as of the last demux_read. Callers only read it.
struct demux {
    const struct demux_driver *driver;
    const struct url_input *source;
    const struct AVCodecParameters *parameters; // RTSP: no size before a keyframe
    const char *transport;                      // of RTSP: "tcp", "udp", "multicast"; else NULL
    // How to show pictures that have no orientation of their own: enum orientation, or -EINVAL if
    // quarter turns and mirrors cannot express it.
    int orientation;
    int rate_num, rate_den;  // nominal frames per second; 0/0: unknown
    int64_t patience_ns;     // how long this input may be silent
    bool knows_losses;       // each packet reports missing data: the decoder need not detect it
    char why[DEMUX_WHY_MAX]; // demux_read failed: a sentence without a secret; "": see its error
    struct demux_network network;
};

// Connects, or opens a file, within connect_timeout, and chooses the video track. RTSP's answer to
// PLAY and the first picture may still be on their way. `why` (of `size` bytes) gets one sentence
// for people on failure, never with a password. Returns 0; -ETIMEDOUT, -ECANCELED (*stop), -EACCES
// (authentication refused), -EPERM (the camera forbids the stream), -EINVAL (no video track, or an
// option unknown to the demuxer), -EMEDIUMTYPE (RTSP in a codec that only libavformat reads, but
// the URL or `tls` does not allow it), or libavformat's error as negative errno: -EIO if it has
// none, or if the input ends before there is a stream. The configuration, `memory` (NULL: nothing
// is remembered) and *stop outlive the demux. `stages` (NULL: not watched) is notified of each step
// that may block, with its deadline.
int demux_open(struct demux **ret, const struct camera_config *, struct demux_memory *memory,
               const _Atomic bool *stop, struct stage_watch *stages, char *why, size_t size);
// Returns true for rtsp, sockets and fifos, which can come back: their end is an outage.
bool demux_is_live(const char *url);
// Returns the next packet of the video track: 0; -ENODATA at the end; -EREMCHG: the sender
// restarted, and the stream continues as another one: everything before is complete, the next
// packet is a keyframe; -EPROTO at the end of a file that is cut short, as far as its container
// shows it (MPEG-TS and raw streams do not); -ETIMEDOUT after patience_ns of silence; -ETIME:
// an RTSP camera sends no pictures of the announced codec; -ERESTART: the packets' numbers went
// back, and libavformat does not recover from that; -EACCES: the password was refused after all;
// -ECANCELED; another negative errno.
int demux_read(struct demux *, struct packet *);
int demux_rewind(struct demux *); // to the start, for `loop`; negative errno if it cannot seek
void demux_close(struct demux *); // within close_timeout; accepts NULL

enum { DEMUX_DESCRIPTION_MAX = 128 };

// Writes "h264 1920x1080 25 fps over rtsp/tcp" and returns it: complete with the first packet.
const char *demux_describe(const struct demux *, char to[DEMUX_DESCRIPTION_MAX]);

// --- before anything is opened

// The kind of input behind a camera's URL.
struct url_input {
    enum url_kind kind;
    bool fifo;             // the file is a fifo
    bool live;             // it can come back: its end is an outage, unlike others'
    const char *whitelist; // libavformat's protocols that are allowed: a file that is really a
                           // playlist must not reach the network
    const char *name;      // for people: "over rtsp"
};

const struct url_input *url_input_of(const char *url); // NULL: framed does not support it

// Look up libavformat's demuxers and their options.
bool demuxer_exists(const char *name);
// Returns true if demux_open accepts an option of that name: of the camera's demuxer, of
// libavformat itself, or of the protocol in the camera's URL. Without `demuxer`, probing may find
// any demuxer; with `url` NULL, the protocol may be any.
bool demuxer_takes_option(const struct camera_config *, const char *option);

// --- the orientation in which a stream's pictures are shown

enum { ORIENTATION_MATRIX_BYTES = 9 * sizeof(int32_t) };

// Returns the enum orientation of a display matrix of libav, column by column in 1/65536, or
// -EINVAL if quarter turns and mirrors, at any scale, cannot express it.
int orientation_of(const int32_t matrix[9]);
// Returns "turned by 90 degrees clockwise" and the like.
const char *orientation_name(enum orientation);

// --- the kinds of demux

struct demux_context { // arguments of demux_open
    const struct camera_config *config;
    struct demux_memory *memory; // NULL: nothing is remembered
    const _Atomic bool *stop;
    struct stage_watch *stages;
};

struct demux_driver { // see the functions above
    int (*open)(struct demux **ret, const struct url_input *, const struct demux_context *,
                char *why, size_t size);
    int (*read)(struct demux *, struct packet *);
    int (*rewind)(struct demux *); // NULL: it cannot seek
    void (*close)(struct demux *);
};

extern const struct demux_driver demux_libav, demux_rtsp;

// How long an input of unknown picture interval may be silent.
static const int64_t DEMUX_PATIENCE_NS = 5 * INT64_C(1000000000);

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
    bool is_next;     // the time that comes with a packet belongs to the next one:
    int64_t next_ns;  // 0: unknown
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

#endif
