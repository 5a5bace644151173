// Weighted sums of samples in NEON vectors.
#ifndef FRAMED_KERNELS_CPU_FILTER_NEON_H
#define FRAMED_KERNELS_CPU_FILTER_NEON_H

#include "kernels/cpu/vector_neon.h"

// --- columns: samples times the high parts of weights, and times the low parts

// Weights of two rows, for all samples.
static inline FRAMED_HD vec_u8 weights_of_pair(int first, int second)
{
    return (vec_u8)vcombine_u8(vdup_n_u8((uint8_t)first), vdup_n_u8((uint8_t)second));
}

// Loads a block: for triples of samples, three quarters of a register.
static inline FRAMED_HD vec_u8 block_load(const uint8_t *at, bool triples)
{
    if (!triples)
        return load_u8(at);
    uint32_t last;
    memcpy(&last, at + 8, sizeof(last));
    return (vec_u8)vcombine_u8(vld1_u8(at), vcreate_u8(last));
}

// Sums of a single row: its samples with full weight.
static inline FRAMED_HD void block_copy(vec_s16 v[2], vec_u8 a)
{
    v[0] = (vec_s16)vshll_n_u8(vget_low_u8((uint8x16_t)a), 7);
    v[1] = (vec_s16)vshll_n_u8(vget_high_u8((uint8x16_t)a), 7);
}

struct column_sums {
    vec_u16 high[2], low[2];
};

// Adds half a register of samples, signed if they are centred.
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

// --- columns: words, in two halves of 32-bit sums

struct word_sums {
    vec_s32 part[2];
};

typedef int16x4_t word_weights; // only the first two are used

static inline FRAMED_HD word_weights word_weights_of(const int16_t *two)
{
    return vld1_s16(two); // axes have room for eight
}

static inline FRAMED_HD void word_sums_add(struct word_sums *s, vec_s16 a, vec_s16 b,
                                           word_weights w)
{
    const int16x8_t row[2] = {(int16x8_t)a, (int16x8_t)b};
    int32x4_t low = (int32x4_t)s->part[0], high = (int32x4_t)s->part[1];
    low = vmlal_lane_s16(low, vget_low_s16(row[0]), w, 0);
    high = vmlal_high_lane_s16(high, row[0], w, 0);
    s->part[0] = (vec_s32)vmlal_lane_s16(low, vget_low_s16(row[1]), w, 1);
    s->part[1] = (vec_s32)vmlal_high_lane_s16(high, row[1], w, 1);
}

static inline FRAMED_HD vec_s16 word_sums_narrow(const struct word_sums *s, int shift)
{
    const int16x4_t low = vmovn_s32((int32x4_t)(s->part[0] >> shift));
    return (vec_s16)vmovn_high_s32(low, (int32x4_t)(s->part[1] >> shift));
}

// --- columns: where a block's sums go

static inline FRAMED_HD void columns_store(int16_t *to, vec_s16 a, vec_s16 b)
{
    store_s16(to, a);
    store_s16(to + LANES, b);
}

struct column_split {
    uint8_t order[2][VECTOR_BYTES]; // of bytes
};

// `sample`: the block's sample for each lane of its four quarters.
static inline void column_split_init(struct column_split *s, const uint8_t sample[2 * LANES],
                                     bool words, bool triples)
{
    (void)words;
    (void)triples;
    for (int i = 0; i < 2 * VECTOR_BYTES; i++)
        s->order[i / VECTOR_BYTES][i % VECTOR_BYTES] = (uint8_t)(2 * sample[i / 2] + i % 2);
}

static inline FRAMED_HD void columns_split(int16_t *const to[4], const struct column_split *s,
                                           const vec_s16 v[2], bool words)
{
    (void)words;
    const uint8x16x2_t both = {{(uint8x16_t)v[0], (uint8x16_t)v[1]}};
    for (int i = 0; i < 2; i++)
        halves_store((uint8_t *)to[2 * i], (uint8_t *)to[2 * i + 1],
                     (vec_u8)vqtbl2q_u8(both, vld1q_u8(s->order[i])));
}

// --- rows: DOTS output pixels at a time. The samples of pixel i start at row[at[i]], its weights
// at weights[i * stride]. A pixel has at most `most` samples; samples read beyond have weight 0.

enum { DOTS = 4 };

static inline FRAMED_HD void dots_store(int16_t *to, const int32x4_t sum[DOTS])
{
    const int32x4_t sums = vpaddq_s32(vpaddq_s32(sum[0], sum[1]), vpaddq_s32(sum[2], sum[3]));
    vst1_s16(to, vrshrn_n_s32(vsubq_s32(sums, vdupq_n_s32(128 * 128 * WEIGHT_ONE)), WEIGHT_BITS));
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

#endif
