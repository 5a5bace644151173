// Sorts keys by their digits from the lowest up. Each pass is stable; a pass is skipped if its
// digit is the same in all keys.
#ifndef FRAMED_KERNELS_CPU_DETECT_SORT_H
#define FRAMED_KERNELS_CPU_DETECT_SORT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    SORT_FEW = 24,
    SORT_BITS = 11,
    SORT_BINS = 1 << SORT_BITS,
    SORT_DIGITS = 6, // of 64 bits; the last three are the score's
};

static inline void sort_few(uint64_t *keys, int n)
{
    for (int i = 1; i < n; i++) {
        const uint64_t key = keys[i];
        int at = i;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

// Lowest bit of digit i: 0, 11, 22, 32, 43, 54.
static inline int sort_shift(int i)
{
    return i < 3 ? i * SORT_BITS : 32 + (i - 3) * SORT_BITS;
}

static inline unsigned sort_digit(uint64_t key, int i)
{
    return (key >> sort_shift(i)) & (i == 2 ? SORT_BINS / 2 - 1 : SORT_BINS - 1);
}

// `in_order`: keys of equal scores are already in order. Returns the array with the sorted keys:
// `keys`, or `spare`, which has the same size.
static inline uint64_t *sort_keys(uint64_t *keys, uint64_t *spare, int n, bool in_order)
{
    if (n <= SORT_FEW) {
        sort_few(keys, n);
        return keys;
    }
    for (int i = in_order ? 3 : 0; i < SORT_DIGITS; i++) {
        uint32_t place[SORT_BINS] = {0}, sum = 0;
        for (int k = 0; k < n; k++)
            place[sort_digit(keys[k], i)]++;
        if (place[sort_digit(keys[0], i)] == (uint32_t)n)
            continue;
        for (int bin = 0; bin < SORT_BINS; bin++) {
            const uint32_t count = place[bin];
            place[bin] = sum;
            sum += count;
        }
        for (int k = 0; k < n; k++)
            spare[place[sort_digit(keys[k], i)]++] = keys[k];
        uint64_t *const sorted = spare;
        spare = keys;
        keys = sorted;
    }
    return keys;
}

#endif
