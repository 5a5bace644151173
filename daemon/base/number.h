// Integers: bounds, rounding, hashes, and big-endian ones, as networks and containers store them.
#ifndef FRAMED_DAEMON_BASE_NUMBER_H
#define FRAMED_DAEMON_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t bounds_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t bounds_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

// FNV-1a. The first call gets HASH_BEGIN, later ones the hash so far.
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
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
