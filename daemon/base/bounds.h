#ifndef FRAMED_DAEMON_BASE_BOUNDS_H
#define FRAMED_DAEMON_BASE_BOUNDS_H

#include <stdint.h>

static inline int64_t bounds_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t bounds_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
