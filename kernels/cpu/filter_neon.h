// Sums of weighed samples in vectors of NEON.
#ifndef FRAMED_KERNELS_CPU_FILTER_NEON_H
#define FRAMED_KERNELS_CPU_FILTER_NEON_H

#include "kernels/cpu/vector_neon.h"

// --- columns: samples times the high parts of weights, and times the low ones

// Two rows' weights for all samples.
static inline FRAMED_HD vec_u8 weights_of_pair(int first, int second)
{
    return (vec_u8)vcombine_u8(vdup_n_u8((uint8_t)first), vdup_n_u8((uint8_t)second));
}

struct column_sums {
    vec_u16 high[2], low[2];
};

// Half a register of samples, signed where they are centred.
static inline FRAMED_HD vec_u16 product_add(vec_u16 sum, uint8x8_t sample, uint8x8_t weight,
                                            bool centred)
{
    if (centred)
        return (vec_u16)vmlal_s8((int16x8_t)sum, vreinterpret_s8_u8(sample),
                                 vreinterpret_s8_u8(weight));
    return (vec_u16)vmlal_u8((uint16x8_t)sum, sample, weight);
}

static inline FRAMED_HD void column_sums_add(struct column_sums *s, vec_u8 a, vec_u8 b, vec_u8 high,
                                             vec_u8 low, bool centred)
{
    const uint8x16_t row[2] = {(uint8x16_t)a, (uint8x16_t)b};
    const uint8x8_t h[2] = {vget_low_u8((uint8x16_t)high), vget_high_u8((uint8x16_t)high)};
    const uint8x8_t l[2] = {vget_low_u8((uint8x16_t)low), vget_high_u8((uint8x16_t)low)};
    for (int i = 0; i < 2; i++) {
        const uint8x8_t half[2] = {vget_low_u8(row[i]), vget_high_u8(row[i])};
        for (int k = 0; k < 2; k++) {
            s->high[k] = product_add(s->high[k], half[k], h[i], centred);
            s->low[k] = product_add(s->low[k], half[k], l[i], centred);
        }
    }
}

static inline FRAMED_HD void columns_store(int16_t *to, vec_s16 a, vec_s16 b)
{
    store_s16(to, a);
    store_s16(to + LANES, b);
}

// --- rows: DOTS output pixels at a time. The samples of pixel i start at row[at[i]], its weights
// at weights[i * stride]. None has more than `most` samples; what is read behind them weighs
// nothing.

enum { DOTS = 4 };

static inline FRAMED_HD void dots_store(int16_t *to, const int32x4_t sum[DOTS])
{
    const int32x4_t sums = vpaddq_s32(vpaddq_s32(sum[0], sum[1]), vpaddq_s32(sum[2], sum[3]));
    vst1_s16(to, vrshrn_n_s32(sums, WEIGHT_BITS));
}

static inline FRAMED_HD void dots_make(int16_t *to, const int16_t *row, const int32_t at[DOTS],
                                       const int16_t *weights, int stride, int most)
{
    int32x4_t sum[DOTS];
    for (int k = 0; k < DOTS; k++) {
        sum[k] = vdupq_n_s32(0);
        for (int i = 0; i < most; i += 8) {
            const int16x8_t w = vld1q_s16(weights + k * stride + i);
            const int16x8_t v = vld1q_s16(row + at[k] + i);
            sum[k] = vmlal_s16(sum[k], vget_low_s16(v), vget_low_s16(w));
            sum[k] = vmlal_high_s16(sum[k], v, w);
        }
    }
    dots_store(to, sum);
}

// The same of two components whose samples lie by turns.
static inline FRAMED_HD void dots_make_two(int16_t *first, int16_t *second, const int16_t *row,
                                           const int32_t at[DOTS], const int16_t *weights,
                                           int stride, int most)
{
    int32x4_t sum[2][DOTS];
    for (int k = 0; k < DOTS; k++) {
        sum[0][k] = sum[1][k] = vdupq_n_s32(0);
        for (int i = 0; i < most; i += 4) {
            const int16x4_t w = vld1_s16(weights + k * stride + i);
            const int16x4x2_t v = vld2_s16(row + 2 * (at[k] + i));
            sum[0][k] = vmlal_s16(sum[0][k], v.val[0], w);
            sum[1][k] = vmlal_s16(sum[1][k], v.val[1], w);
        }
    }
    dots_store(first, sum[0]);
    dots_store(second, sum[1]);
}

#endif
