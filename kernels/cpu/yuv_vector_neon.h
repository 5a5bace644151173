// What yuv asks of 128-bit registers. A block is LANES pixels of a row.
#ifndef FRAMED_KERNELS_CPU_YUV_VECTOR_NEON_H
#define FRAMED_KERNELS_CPU_YUV_VECTOR_NEON_H

#include <arm_neon.h>

#include "kernels/fixed.h"

enum { LANES = 16 };

typedef uint8x16_t vec; // LANES bytes

struct pixels {
    vec channel[3];
};

// 2x2 blocks in 16-bit lanes.
struct means {
    int16x8_t channel[3];
};

struct weights {
    int16x4_t channel[3][3];
    int32x4_t round[3];
};

// --- bytes

static inline FRAMED_HD vec load(const uint8_t *at)
{
    return vld1q_u8(at);
}

static inline FRAMED_HD void store(uint8_t *at, vec v)
{
    vst1q_u8(at, v);
}

// The first half of a result from `low`, the second from `high`.
static inline FRAMED_HD vec halves_load(const uint8_t *low, const uint8_t *high)
{
    return vcombine_u8(vld1_u8(low), vld1_u8(high));
}

static inline FRAMED_HD void halves_store(uint8_t *low, uint8_t *high, vec v)
{
    vst1_u8(low, vget_low_u8(v));
    vst1_u8(high, vget_high_u8(v));
}

// a0 a1 ... b0 b1 ... to a0 b0 a1 b1 ..., and back.
static inline FRAMED_HD vec halves_zip(vec v)
{
    const uint8x8x2_t zipped = vzip_u8(vget_low_u8(v), vget_high_u8(v));
    return vcombine_u8(zipped.val[0], zipped.val[1]);
}

static inline FRAMED_HD vec halves_split(vec v)
{
    const uint8x8x2_t split = vuzp_u8(vget_low_u8(v), vget_high_u8(v));
    return vcombine_u8(split.val[0], split.val[1]);
}

static inline FRAMED_HD uint8x8_t load_kept10_half(const uint8_t *at, bool top)
{
    const uint16x8_t words = vreinterpretq_u16_u8(load(at));
    const uint16x8_t samples = top ? vshrq_n_u16(words, 6) : vandq_u16(words, vdupq_n_u16(1023));
    return vqrshrn_n_u16(samples, 2);
}

// (x + 2) / 4 of LANES 10-bit samples, which lie at the top of their words or at the bottom.
static inline FRAMED_HD vec load_kept10(const uint8_t *at, bool top)
{
    return vcombine_u8(load_kept10_half(at, top), load_kept10_half(at + 16, top));
}

// --- 16-bit lanes, LANES / 2 of them

typedef int16x8_t words;

static inline FRAMED_HD words words_all(int x)
{
    return vdupq_n_s16((int16_t)x);
}

static inline FRAMED_HD words words_load(const int16_t *at)
{
    return vld1q_s16(at);
}

static inline FRAMED_HD void words_store(int16_t *at, words a)
{
    vst1q_s16(at, a);
}

static inline FRAMED_HD words words_add(words a, words b)
{
    return vaddq_s16(a, b);
}

static inline FRAMED_HD words words_adds(words a, words b)
{
    return vqaddq_s16(a, b);
}

static inline FRAMED_HD words words_sub(words a, words b)
{
    return vsubq_s16(a, b);
}

static inline FRAMED_HD words words_mul(words a, words b)
{
    return vmulq_s16(a, b);
}

static inline FRAMED_HD words words_mulhrs(words a, words b)
{
    return vqrdmulhq_s16(a, b);
}

static inline FRAMED_HD words words_sra6(words a)
{
    return vshrq_n_s16(a, 6);
}

// Saturates to 0..255.
static inline FRAMED_HD vec words_pack(words low, words high)
{
    return vcombine_u8(vqmovun_s16(low), vqmovun_s16(high));
}

static inline FRAMED_HD void words_store_zipped(int16_t *at, words even, words odd)
{
    const int16x8x2_t zipped = {{even, odd}};
    vst2q_s16(at, zipped);
}

// --- pixels

static inline FRAMED_HD struct pixels pixels_of_4(const uint8_t *at)
{
    const uint8x16x4_t p = vld4q_u8(at);
    return (struct pixels){{p.val[0], p.val[1], p.val[2]}};
}

static inline FRAMED_HD struct pixels pixels_of_3(const uint8_t *at)
{
    const uint8x16x3_t p = vld3q_u8(at);
    return (struct pixels){{p.val[0], p.val[1], p.val[2]}};
}

static inline FRAMED_HD struct pixels pixels_of_planes(vec first, vec second, vec third)
{
    return (struct pixels){{first, second, third}};
}

// --- levels

// `reversed`: the pixels come as B, G and R.
static inline struct weights weights_of(const struct rgb_to_yuv *c, bool reversed)
{
    struct weights w;
    const int scale = 1 << (15 - c->shift); // so that every matrix shifts by 15
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            w.channel[i][k] = vdup_n_s16((int16_t)(c->row[i][reversed ? 2 - k : k] * scale));
        w.round[i] = vdupq_n_s32(c->round[i] * scale);
    }
    return w;
}

static inline FRAMED_HD uint8x8_t levels8(const int16x8_t channel[3], const struct weights *w,
                                          int c)
{
    int32x4_t low = w->round[c], high = low;
    for (int k = 0; k < 3; k++) {
        low = vmlal_s16(low, vget_low_s16(channel[k]), w->channel[c][k]);
        high = vmlal_s16(high, vget_high_s16(channel[k]), w->channel[c][k]);
    }
    return vqmovn_u16(vcombine_u16(vqshrun_n_s32(low, 15), vqshrun_n_s32(high, 15)));
}

static inline FRAMED_HD vec levels(const struct pixels *p, const struct weights *w, int c)
{
    int16x8_t low[3], high[3];
    for (int k = 0; k < 3; k++) {
        low[k] = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(p->channel[k])));
        high[k] = vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(p->channel[k])));
    }
    return vcombine_u8(levels8(low, w, c), levels8(high, w, c));
}

// y0 u0 v0 y1 ...
static inline FRAMED_HD void store_triples(uint8_t *at, vec y, vec u, vec v)
{
    const uint8x16x3_t yuv = {{y, u, v}};
    vst3q_u8(at, yuv);
}

static inline FRAMED_HD void store_yuv24(uint8_t *at, const struct pixels *p,
                                         const struct weights *w)
{
    store_triples(at, levels(p, w, 0), levels(p, w, 1), levels(p, w, 2));
}

// --- 4:2:0

static inline FRAMED_HD vec lumas(const struct pixels *p, const struct weights *w)
{
    return levels(p, w, 0);
}

static inline FRAMED_HD struct means means_of(const struct pixels *top, const struct pixels *bottom)
{
    struct means m;
    for (int k = 0; k < 3; k++) {
        const uint16x8_t sum = vpadalq_u8(vpaddlq_u8(top->channel[k]), bottom->channel[k]);
        m.channel[k] = vreinterpretq_s16_u16(vrshrq_n_u16(sum, 2));
    }
    return m;
}

// U and V by turns.
static inline FRAMED_HD vec chroma_of(const struct means *m, const struct weights *w)
{
    return halves_zip(vcombine_u8(levels8(m->channel, w, 1), levels8(m->channel, w, 2)));
}

#endif
