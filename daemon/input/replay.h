// Detects repeated pictures: many servers begin each session with a cached second of video, even if
// the camera behind them is dead. Pure. One thread uses a replay.
//
// A picture of an earlier session is old if it arrives faster than its timestamp says, or within
// the length of a session that sent nothing new and fell silent. Pictures that arrive at their pace
// are live, also from servers that play a clip from the start for each client; the speed of reading
// ready pictures is no pace. The first old picture looks like such a clip's and counts as old. A
// picture with missing packets is never new: its bytes are not the sender's.
#ifndef FRAMED_DAEMON_INPUT_REPLAY_H
#define FRAMED_DAEMON_INPUT_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REPLAY_UNITS = 1024 }; // more than servers cache

// State of one camera, over its sessions; zeroed at first.
struct replay_memory {
    uint64_t hashes[REPLAY_UNITS]; // of the last units of all sessions; a ring
    unsigned n;
    int64_t silent_ns; // length of the last session, if it sent nothing new and fell silent; 0: no
};

// State of one session; zeroed at first.
struct replay {
    bool live;      // further units are not old
    bool news;      // a unit arrived that no earlier session had sent
    unsigned units; // so far
    int64_t first_ns, last_ns, last_time_ns;
};

struct replay_unit {
    const uint8_t *data;
    size_t bytes;
    int64_t received_ns; // CLOCK_MONOTONIC
    int64_t time_ns;     // by its timestamp
    int64_t usual_ns;    // the camera's interval; 0: unknown
    bool waited;         // it was waited for; else it may have been ready before received_ns
    bool incomplete;     // packets are missing in it or right before it
};

// Call for each unit in turn. Returns true if it is old.
bool replay_add(struct replay *, struct replay_memory *, const struct replay_unit *);
// Call at the end of a session. `silent`: it was ended because no more units arrived.
void replay_end(const struct replay *, struct replay_memory *, bool silent);

#endif
