// Big-endian numbers, as networks and containers store them.
#ifndef FRAMED_DAEMON_BASE_BIG_ENDIAN_H
#define FRAMED_DAEMON_BASE_BIG_ENDIAN_H

#include <stdint.h>

// Reads `bytes` bytes, at most 8.
static inline uint64_t big_endian_read(const uint8_t *data, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | data[i];
    return value;
}

#endif
