// Histogram of level >> 2 and number of clipped levels, without AVX-512: two pixels at a time are
// counted in a table of pairs. Several tables alternate, because incrementing a count again is slow
// just after its last change.
#ifndef FRAMED_KERNELS_CPU_LEVELS_PAIRS_H
#define FRAMED_KERNELS_CPU_LEVELS_PAIRS_H

#include "kernels/cpu/fixed_lanes.h"
#include "kernels/statistics.h"

enum {
    PAIRS_TABLES = 4,
    PAIRS_VECTORS = 0xffff / (LANES / PAIRS_TABLES), // before a count may overflow
    CLIPPED_VECTORS = 255,
};

struct levels {
    uint8_t black, white;
    int vectors, clipped_vectors;
    vec_u8 above, whites; // counts per column of a vector
    uint32_t above_sum, white_sum, bin[STATISTICS_BINS];
    // [right pixel's bin][left pixel's bin]. A gap follows each table, since CPUs first compare the
    // lower 12 bits of addresses alone and would confuse the tables' entries.
    uint16_t pairs[PAIRS_TABLES][(STATISTICS_BINS + 1) * STATISTICS_BINS];
};

static inline void levels_init(struct levels *l, int black, int white)
{
    memset(l, 0, sizeof *l);
    l->black = (uint8_t)black;
    l->white = (uint8_t)white;
}

static inline void clipped_fold(struct levels *l)
{
    for (int i = 0; i < PIXELS; i++) {
        l->above_sum += l->above[i];
        l->white_sum += l->whites[i];
    }
    l->above = l->whites = (vec_u8){0};
    l->clipped_vectors = 0;
}

static inline void pairs_fold(struct levels *l)
{
    for (int right = 0; right < STATISTICS_BINS; right++)
        for (int left = 0; left < STATISTICS_BINS; left++) {
            uint32_t pairs = 0;
            for (int t = 0; t < PAIRS_TABLES; t++)
                pairs += l->pairs[t][right * STATISTICS_BINS + left];
            l->bin[left] += pairs;
            l->bin[right] += pairs;
        }
    memset(l->pairs, 0, sizeof l->pairs);
    l->vectors = 0;
}

static inline FRAMED_HD void levels_add(struct levels *l, vec_u8 v)
{
    uint16_t at[LANES];
    store_s16((int16_t *)at, (vec_s16)(((vec_u16)v >> 2 & 0x3f) | ((vec_u16)v >> 4 & 0xfc0)));
    for (int i = 0; i < LANES; i++)
        l->pairs[i % PAIRS_TABLES][at[i]]++;
    l->above -= (vec_u8)(v > l->black);
    l->whites -= (vec_u8)(v >= l->white);
    if (++l->clipped_vectors == CLIPPED_VECTORS)
        clipped_fold(l);
    if (++l->vectors == PAIRS_VECTORS)
        pairs_fold(l);
}

// Bin 0 and `black` are remainders, so that any number of level 0 pixels may have been added.
static inline void levels_count(struct levels *l, struct luma_statistics *ret)
{
    clipped_fold(l);
    pairs_fold(l);
    ret->black = ret->pixels - l->above_sum;
    ret->white = l->white_sum;
    ret->histogram[0] = ret->pixels;
    for (int i = 1; i < STATISTICS_BINS; i++) {
        ret->histogram[i] = l->bin[i];
        ret->histogram[0] -= l->bin[i];
    }
}

#endif
