// Histogram of level >> 2 and number of clipped levels, in AVX-512. Each bit of 512 pixels' levels
// is a plane of 512 bits. Three planes give eight sets of pixels, with bits 0 to 7; the
// intersection of two such sets is the pixels of one bin, which are counted: eight bins at a time
// over many planes, with counts in registers.
#ifndef FRAMED_KERNELS_CPU_LEVELS_AVX512_H
#define FRAMED_KERNELS_CPU_LEVELS_AVX512_H

#include "kernels/cpu/fixed_lanes.h"
#include "kernels/statistics.h"

enum { LEVELS_PLANES = 6, LEVELS_GROUPS = 8, LEVELS_VECTORS = 8 * LEVELS_GROUPS };

struct levels {
    __m512i black, white;
    uint32_t above, whites;
    int filled; // vectors of 64 pixels in the planes
    uint64_t plane[LEVELS_PLANES][LEVELS_VECTORS];
    __m512i bin[STATISTICS_BINS]; // counts
};

static inline void levels_init(struct levels *l, int black, int white)
{
    memset(l, 0, sizeof *l);
    l->black = _mm512_set1_epi8((char)black);
    l->white = _mm512_set1_epi8((char)white);
}

// Sets of pixels whose bits a, b and c are 0 to 7.
static inline FRAMED_HD void sets_of(__m512i set[8], __m512i a, __m512i b, __m512i c)
{
    set[0] = _mm512_ternarylogic_epi64(a, b, c, 0x01);
    set[1] = _mm512_ternarylogic_epi64(a, b, c, 0x02);
    set[2] = _mm512_ternarylogic_epi64(a, b, c, 0x04);
    set[3] = _mm512_ternarylogic_epi64(a, b, c, 0x08);
    set[4] = _mm512_ternarylogic_epi64(a, b, c, 0x10);
    set[5] = _mm512_ternarylogic_epi64(a, b, c, 0x20);
    set[6] = _mm512_ternarylogic_epi64(a, b, c, 0x40);
    set[7] = _mm512_ternarylogic_epi64(a, b, c, 0x80);
}

static inline void planes_count(struct levels *l)
{
    __m512i high[LEVELS_GROUPS][8], low[LEVELS_GROUPS][8];
    for (int g = 0; g < LEVELS_GROUPS; g++) {
        __m512i p[LEVELS_PLANES];
        for (int i = 0; i < LEVELS_PLANES; i++)
            p[i] = _mm512_loadu_si512(l->plane[i] + 8 * g);
        sets_of(high[g], p[5], p[4], p[3]);
        sets_of(low[g], p[2], p[1], p[0]);
    }
    for (int h = 0; h < 8; h++) {
        __m512i bin[8];
        for (int i = 0; i < 8; i++)
            bin[i] = l->bin[8 * h + i];
        for (int g = 0; g < LEVELS_GROUPS; g++)
            for (int i = 0; i < 8; i++) {
                const __m512i both = _mm512_and_si512(high[g][h], low[g][i]);
                bin[i] = _mm512_add_epi64(bin[i], _mm512_popcnt_epi64(both));
            }
        for (int i = 0; i < 8; i++)
            l->bin[8 * h + i] = bin[i];
    }
    l->filled = 0;
}

static inline FRAMED_HD void levels_add(struct levels *l, vec_u8 v)
{
    const int n = l->filled++;
    for (int i = 0; i < 4; i++)
        l->plane[i][n] = _mm512_test_epi8_mask((mm)v, _mm512_set1_epi8((char)(4 << i)));
    l->plane[4][n] = _mm512_movepi8_mask((mm)(v + v)); // tests use one port alone, this another
    l->plane[5][n] = _mm512_movepi8_mask((mm)v);
    l->above += (uint32_t)__builtin_popcountll(_mm512_cmpgt_epu8_mask((mm)v, l->black));
    l->whites += (uint32_t)__builtin_popcountll(_mm512_cmpge_epu8_mask((mm)v, l->white));
    if (n == LEVELS_VECTORS - 1)
        planes_count(l);
}

// Bin 0 and `black` are remainders, so that any number of level 0 pixels may have been added.
static inline void levels_count(struct levels *l, struct luma_statistics *ret)
{
    for (int i = 0; i < LEVELS_PLANES; i++)
        memset(l->plane[i] + l->filled, 0, (size_t)(LEVELS_VECTORS - l->filled) * 8);
    planes_count(l);
    ret->histogram[0] = ret->pixels;
    for (int i = 1; i < STATISTICS_BINS; i++) {
        ret->histogram[i] = (uint32_t)_mm512_reduce_add_epi64(l->bin[i]);
        ret->histogram[0] -= ret->histogram[i];
    }
    ret->black = ret->pixels - l->above;
    ret->white = l->whites;
}

#endif
