// Fingerprints of as many pictures at a time as a register has lanes of 32 bits, each lane another
// picture's.
#ifndef FRAMED_KERNELS_CPU_FINGERPRINT_LANES_H
#define FRAMED_KERNELS_CPU_FINGERPRINT_LANES_H

#if defined(__x86_64__)
#include "kernels/cpu/vector_x86.h"
#else
#include "kernels/cpu/vector_neon.h"
#endif
#include "kernels/fingerprint.h"

enum { PAIRS = FINGERPRINT_SIDE / 2, FOLDED = PAIRS / 2, HALF = FINGERPRINT_BITS / 2 };

// A row of the table is the same from both ends, or the same with the other sign: of even
// frequencies sums of two pixels are weighed, one from each end, and of odd ones differences. They
// come in pairs of every second. The first half of a row of the table in that order:
static inline FRAMED_HD void weights_fold(int16_t folded[PAIRS], const int16_t weights[])
{
    for (int x = 0; x < PAIRS; x += 4) {
        folded[x] = weights[x];
        folded[x + 1] = weights[x + 2];
        folded[x + 2] = weights[x + 1];
        folded[x + 3] = weights[x + 3];
    }
}

// A row of each picture, from `row` of the first.
static inline FRAMED_HD void row_fold(vec_s16 sums[FOLDED], vec_s16 differences[FOLDED],
                                      const uint8_t *row)
{
    vec_u32 four[FINGERPRINT_SIDE / 4]; // pixels of each picture
    for (int i = 0; i < FINGERPRINT_SIDE / 4; i++)
        four[i] =
            quarters_collect(row + (i % 4) * FINGERPRINT_LUMA + i / 4 * 16, 4 * FINGERPRINT_LUMA);
    quarters_transpose(four);
    quarters_transpose(four + 4);
    for (int i = 0; i < FINGERPRINT_SIDE / 8; i++) {
        const vec_u32 begin = four[i], end = four[FINGERPRINT_SIDE / 4 - 1 - i];
        const vec_s16 low = (vec_s16)(begin & 0x00ff00ff);
        const vec_s16 high = (vec_s16)(begin >> 8 & 0x00ff00ff);
        const vec_s16 last = (vec_s16)((end << 8 | end >> 24) & 0x00ff00ff); // bytes 3 and 1
        const vec_s16 middle = (vec_s16)((end << 16 | end >> 16) & 0x00ff00ff);
        sums[2 * i] = low + last;
        sums[2 * i + 1] = high + middle;
        differences[2 * i] = low - last;
        differences[2 * i + 1] = high - middle;
    }
}

static inline FRAMED_HD vec_s32 pairs_weigh(int32_t sum, const vec_s16 pairs[],
                                            const int16_t weights[], int n)
{
    vec_s32 sums = all_s32(sum);
    for (int i = 0; i < n; i++) {
        int32_t pair;
        memcpy(&pair, weights + 2 * i, sizeof pair);
        sums = dot_pairs(sums, pairs[i], (vec_s16)all_s32(pair));
    }
    return sums;
}

// C of FLOATS pictures.
static inline FRAMED_HD void lanes_transform(vec_s32 numbers[FINGERPRINT_BITS], const uint8_t *luma,
                                             int16_t folded[][PAIRS])
{
    vec_s16 rows[FINGERPRINT_FREQUENCIES][PAIRS]; // B, in pairs of rows
    for (int y = 0; y < FINGERPRINT_SIDE; y++) {
        vec_s16 pairs[2][FOLDED];
        row_fold(pairs[1], pairs[0], luma + y * FINGERPRINT_SIDE);
        for (int v = 0; v < FINGERPRINT_FREQUENCIES; v++) {
            const int32_t round = 1 << (FINGERPRINT_DROPPED - 1);
            const vec_s32 sum =
                pairs_weigh(round, pairs[v % 2], folded[v], FOLDED) >> FINGERPRINT_DROPPED;
            vec_s16 *row = &rows[v][y / 2];
            *row = (vec_s16)(y % 2 ? (vec_u32)*row | (vec_u32)sum << 16 : (vec_u32)sum & 0xffff);
        }
    }
    for (int v = 0; v < FINGERPRINT_FREQUENCIES; v++)
        for (int u = 0; u < FINGERPRINT_FREQUENCIES; u++)
            numbers[u * FINGERPRINT_FREQUENCIES + v] =
                pairs_weigh(0, rows[v], fingerprint_table[u], PAIRS);
}

// Sorts half of the numbers of each picture: Batcher's odd-even merge sort.
static inline FRAMED_HD void lanes_sort(vec_s32 v[HALF])
{
    for (int merged = 1; merged < HALF; merged *= 2)
        for (int begin = 0; begin < HALF; begin += 2 * merged)
            for (int apart = merged; apart >= 1; apart /= 2)
                for (int at = apart % merged; at + apart < 2 * merged; at += 2 * apart)
                    for (int i = begin + at; i < begin + at + apart; i++) {
                        const vec_s32 a = v[i], b = v[i + apart];
                        v[i] = min_s32(a, b);
                        v[i + apart] = max_s32(a, b);
                    }
}

// The 32nd smallest of each picture's. Of two sorted halves the 32 smallest numbers are the smaller
// ones of the first and the last, the second and the last but one, and so on.
static inline FRAMED_HD vec_s32 lanes_median(const vec_s32 numbers[FINGERPRINT_BITS])
{
    vec_s32 sorted[FINGERPRINT_BITS];
    memcpy(sorted, numbers, sizeof sorted);
    lanes_sort(sorted);
    lanes_sort(sorted + HALF);
    vec_s32 median = all_s32(INT32_MIN);
    for (int i = 0; i < HALF; i++)
        median = max_s32(median, min_s32(sorted[i], sorted[FINGERPRINT_BITS - 1 - i]));
    return median;
}

static inline FRAMED_HD void lanes_compare(const vec_s32 numbers[FINGERPRINT_BITS],
                                           uint64_t ret[FLOATS])
{
    const vec_s32 median = lanes_median(numbers);
    vec_u32 low = {0}, high = {0};
    for (int i = 0; i < HALF; i++) {
        low |= (vec_u32)(numbers[i] > median) & 1u << i;
        high |= (vec_u32)(numbers[HALF + i] > median) & 1u << i;
    }
    for (int i = 0; i < FLOATS; i++)
        ret[i] = low[i] | (uint64_t)high[i] << HALF;
}

static inline FRAMED_HD void lanes_fingerprint(const uint8_t (*luma)[FINGERPRINT_LUMA],
                                               uint64_t *ret, int n)
{
    int16_t folded[FINGERPRINT_FREQUENCIES][PAIRS];
    vec_s32 numbers[FINGERPRINT_BITS];
    uint64_t found[FLOATS];
    uint8_t last[FLOATS][FINGERPRINT_LUMA]; // the pictures that are no whole register
    for (int v = 0; v < FINGERPRINT_FREQUENCIES; v++)
        weights_fold(folded[v], fingerprint_table[v]);
    for (int i = 0; i < n; i += FLOATS) {
        const int pictures = n - i < FLOATS ? n - i : FLOATS;
        const uint8_t *from = luma[i];
        if (pictures < FLOATS) {
            memcpy(last, from, (size_t)pictures * FINGERPRINT_LUMA);
            memset(last[pictures], 0, (size_t)(FLOATS - pictures) * FINGERPRINT_LUMA);
            from = last[0];
        }
        lanes_transform(numbers, from, folded);
        lanes_compare(numbers, found);
        memcpy(ret + i, found, (size_t)pictures * sizeof found[0]);
    }
}

#endif
