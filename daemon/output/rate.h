// Limits frames per second: decides by timestamps alone which frames are kept. No I/O, no clock.
#ifndef FRAMED_DAEMON_OUTPUT_RATE_H
#define FRAMED_DAEMON_OUTPUT_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct rate {
    double fps;     // 0 keeps all
    bool begun;     // due_ns is valid
    int64_t due_ns; // the first frame at this pts or later is kept
};

bool rate_keeps(struct rate *, int64_t pts_ns);
// Limits a nominal rate of *num / *den frames per second; 0/0: unknown.
void rate_limit(const struct rate *, int *num, int *den);
void rate_restart(struct rate *); // timestamps restart: the next frame is kept

#endif
