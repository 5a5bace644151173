// Integers: the smaller and the larger of two, and big-endian ones, as networks and containers
// store them.
#ifndef FRAMED_DAEMON_BASE_NUMBER_H
#define FRAMED_DAEMON_BASE_NUMBER_H

#include <stdint.h>

static inline int64_t bounds_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t bounds_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// Reads `bytes` bytes, at most 8.
static inline uint64_t big_endian_read(const uint8_t *data, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | data[i];
    return value;
}

#endif
