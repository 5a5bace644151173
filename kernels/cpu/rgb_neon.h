// RGB to YUV in NEON: loads separate the channels.
#ifndef FRAMED_KERNELS_CPU_RGB_NEON_H
#define FRAMED_KERNELS_CPU_RGB_NEON_H

#include "kernels/cpu/vector_neon.h"

struct pixels { // PIXELS pixels
    uint8x16_t channel[3];
};

struct means { // of the 2x2 blocks of two rows of pixels
    int16x8_t channel[3];
};

struct weights {
    int16x4_t channel[3][3];
    int32x4_t round[3];
};

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

static inline FRAMED_HD struct pixels pixels_of_planes(vec_u8 first, vec_u8 second, vec_u8 third)
{
    return (struct pixels){{(uint8x16_t)first, (uint8x16_t)second, (uint8x16_t)third}};
}

// `reversed`: pixels are B, G and R.
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

static inline FRAMED_HD uint8x8_t half_levels(const int16x8_t channel[3], const struct weights *w,
                                              int c)
{
    int32x4_t low = w->round[c], high = low;
    for (int k = 0; k < 3; k++) {
        low = vmlal_s16(low, vget_low_s16(channel[k]), w->channel[c][k]);
        high = vmlal_s16(high, vget_high_s16(channel[k]), w->channel[c][k]);
    }
    return vqmovn_u16(vcombine_u16(vqshrun_n_s32(low, 15), vqshrun_n_s32(high, 15)));
}

// Levels of Y, U or V.
static inline FRAMED_HD vec_u8 levels(const struct pixels *p, const struct weights *w, int c)
{
    int16x8_t low[3], high[3];
    for (int k = 0; k < 3; k++) {
        low[k] = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(p->channel[k])));
        high[k] = vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(p->channel[k])));
    }
    return (vec_u8)vcombine_u8(half_levels(low, w, c), half_levels(high, w, c));
}

static inline FRAMED_HD void store_yuv24(uint8_t *to, const struct pixels *p,
                                         const struct weights *w)
{
    store_triples(to, levels(p, w, 0), levels(p, w, 1), levels(p, w, 2));
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

// U and V, alternating.
static inline FRAMED_HD vec_u8 chroma_of(const struct means *m, const struct weights *w)
{
    const uint8x8_t u = half_levels(m->channel, w, 1), v = half_levels(m->channel, w, 2);
    return halves_zip((vec_u8)vcombine_u8(u, v));
}

#endif
