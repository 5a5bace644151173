// Which frames a limit of frames per second keeps, by their timestamps. Pure.
#ifndef FRAMED_DAEMON_OUTPUT_RATE_H
#define FRAMED_DAEMON_OUTPUT_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct rate {
    double fps;     // 0 keeps all
    bool begun;     // due_ns holds
    int64_t due_ns; // pts from which on the next frame is kept
};

bool rate_keeps(struct rate *, int64_t pts_ns);
// The nominal rate of what is kept of *num / *den frames per second; 0/0: unknown.
void rate_limit(const struct rate *, int *num, int *den);
void rate_restart(struct rate *); // timestamps begin anew: the next frame is kept

#endif
