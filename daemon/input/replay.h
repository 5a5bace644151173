// Pictures that a session sends again: many servers begin each session with a cached second of
// video, also when the camera behind them is dead. Pure. One thread uses a replay.
//
// A picture of an earlier session is old if it comes faster than its time says, or within the
// length of a session that sent nothing new and fell silent. Pictures that come at their pace are
// live, also from servers that play a clip from the start for each client; how fast pictures are
// read that lie ready is no pace. The first old picture cannot be told from such a clip's; it
// counts as old. A picture with missing packets is never new: its bytes are not the sender's.
#ifndef FRAMED_DAEMON_INPUT_REPLAY_H
#define FRAMED_DAEMON_INPUT_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REPLAY_UNITS = 1024 }; // more than servers cache

// Of one camera, over its sessions; zeroed at first.
struct replay_memory {
    uint64_t hashes[REPLAY_UNITS]; // of the last units of all sessions; a ring
    unsigned n;
    int64_t silent_ns; // length of the last session, if it sent nothing new and fell silent; 0: not
};

// Of one session; zeroed at first.
struct replay {
    bool live;      // what comes is not old any more
    bool news;      // a unit came that no session before had sent
    unsigned units; // so far
    int64_t first_ns, last_ns, last_time_ns;
};

struct replay_unit {
    const uint8_t *data;
    size_t bytes;
    int64_t received_ns; // CLOCK_MONOTONIC
    int64_t time_ns;     // by its timestamp
    int64_t usual_ns;    // the camera's interval; 0: unknown
    bool waited;         // it was waited for: else it may have lain ready before received_ns
    bool incomplete;     // packets are missing in it or right before it
};

// For each unit in turn. Returns whether it is old.
bool replay_add(struct replay *, struct replay_memory *, const struct replay_unit *);
// The session is over. `silent`: it was ended because no more units came.
void replay_end(const struct replay *, struct replay_memory *, bool silent);

#endif
