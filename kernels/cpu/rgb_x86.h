// RGB to YUV in AVX2 and AVX-512: pixels are 16-bit pairs, which one instruction multiplies and
// adds. Sums are twice the level's scale, so that a level is the upper half of a 32-bit lane. Gray
// has no colour: chroma depends on the differences between channels alone.
#ifndef FRAMED_KERNELS_CPU_RGB_X86_H
#define FRAMED_KERNELS_CPU_RGB_X86_H

#include "kernels/cpu/vector_x86.h"

// PIXELS pixels. outer: first and third byte of each; inner: the second byte twice.
struct pixels {
    mm outer[4], inner[4];
};

// 2x2 blocks of two rows of pixels, in the order of packing: the second byte minus the first and
// the third.
struct means {
    mm difference[2];
};

struct weights {
    mm luma_outer, luma_inner;
    mm difference[3]; // [0] is unused
    mm round[3];
};

static inline FRAMED_HD void pixels_put(struct pixels *p, int i, mm v)
{
    const __m128i second = _mm_setr_epi8(1, -1, 1, -1, 5, -1, 5, -1, 9, -1, 9, -1, 13, -1, 13, -1);
    p->outer[i] = (mm)((vec_s32)v & 0x00ff00ff);
    p->inner[i] = MM(shuffle_epi8)(v, each_quarter(second));
}

static inline FRAMED_HD struct pixels pixels_of_4(const uint8_t *at)
{
    struct pixels p;
    for (int i = 0; i < 4; i++)
        pixels_put(&p, i, (mm)load_u8(at + i * VECTOR_BYTES));
    return p;
}

static inline FRAMED_HD struct pixels pixels_of_3(const uint8_t *at)
{
    struct pixels p;
    for (int i = 0; i < 4; i++)
        pixels_put(&p, i, triples_widened(at + i * TRIPLES_BYTES));
    return p;
}

static inline FRAMED_HD struct pixels pixels_of_planes(vec_u8 first, vec_u8 second, vec_u8 third)
{
    const mm zero = (mm)(vec_u8){0};
    const mm a = order_unpacked4((mm)first), b = order_unpacked4((mm)second);
    const mm c = order_unpacked4((mm)third);
    const mm low = MM(unpacklo_epi8)(a, c), high = MM(unpackhi_epi8)(a, c);
    const mm second_low = MM(unpacklo_epi8)(b, zero), second_high = MM(unpackhi_epi8)(b, zero);
    return (struct pixels){
        .outer = {MM(unpacklo_epi8)(low, zero), MM(unpackhi_epi8)(low, zero),
                  MM(unpacklo_epi8)(high, zero), MM(unpackhi_epi8)(high, zero)},
        .inner = {MM(unpacklo_epi16)(second_low, second_low),
                  MM(unpackhi_epi16)(second_low, second_low),
                  MM(unpacklo_epi16)(second_high, second_high),
                  MM(unpackhi_epi16)(second_high, second_high)},
    };
}

static inline FRAMED_HD mm pair_of(int low, int high)
{
    return (mm)all_s32((int32_t)((uint32_t)high << 16 | (low & 0xffff)));
}

// `reversed`: pixels are B, G and R. Negative weights have one more bit.
static inline struct weights weights_of(const struct rgb_to_yuv *c, bool reversed)
{
    struct weights w;
    const int scale = 1 << (15 - c->shift); // so that every matrix shifts by 15
    for (int i = 0; i < 3; i++) {
        const int first = c->row[i][reversed ? 2 : 0] * scale;
        const int second = c->row[i][1] * scale;
        const int third = c->row[i][reversed ? 0 : 2] * scale;
        if (i == 0) {
            w.luma_outer = pair_of(2 * first, 2 * third);
            w.luma_inner = pair_of(second, second);
        }
        w.difference[i] = pair_of(-2 * first, -2 * third);
        w.round[i] = (mm)all_s32(c->round[i] * scale * 2);
    }
    return w;
}

static inline FRAMED_HD mm chroma_sum(mm difference, const struct weights *w, int c)
{
    return dot(w->round[c], difference, w->difference[c]);
}

// Sums of Y, U or V for quarter i of the pixels.
static inline FRAMED_HD mm level_sum(const struct pixels *p, int i, const struct weights *w, int c)
{
    if (c > 0)
        return chroma_sum(MM(sub_epi16)(p->inner[i], p->outer[i]), w, c);
    return dot(dot(w->round[0], p->outer[i], w->luma_outer), p->inner[i], w->luma_inner);
}

static inline FRAMED_HD vec_u8 levels(const struct pixels *p, const struct weights *w, int c)
{
    mm sum[4];
    for (int i = 0; i < 4; i++)
        sum[i] = level_sum(p, i, w, c);
    return c == 0 ? uppers_pack_bytes(sum) : uppers_pack(sum);
}

static inline FRAMED_HD void store_yuv24(uint8_t *to, const struct pixels *p,
                                         const struct weights *w)
{
    mm y[4], u[4], v[4];
    for (int i = 0; i < 4; i++) {
        y[i] = level_sum(p, i, w, 0);
        u[i] = level_sum(p, i, w, 1);
        v[i] = level_sum(p, i, w, 2);
    }
    store_upper_triples(to, y, u, v);
}

// block_mean of the pairs of a and b, which are sums of two rows.
static inline FRAMED_HD vec_s16 means_of_pairs(vec_s16 a, vec_s16 b)
{
    const vec_s16 even = (vec_s16)MM(shuffle_ps)((vec_f32)a, (vec_f32)b, 0x88);
    const vec_s16 odd = (vec_s16)MM(shuffle_ps)((vec_f32)a, (vec_f32)b, 0xdd);
    return mulhrs_s16(even + odd, all_s16(1 << 13));
}

static inline FRAMED_HD struct means means_of(const struct pixels *top, const struct pixels *bottom)
{
    vec_s16 outer[4], inner[4];
    for (int i = 0; i < 4; i++) {
        outer[i] = (vec_s16)top->outer[i] + (vec_s16)bottom->outer[i];
        inner[i] = (vec_s16)top->inner[i] + (vec_s16)bottom->inner[i];
    }
    struct means m;
    for (int i = 0; i < 2; i++)
        m.difference[i] = (mm)(means_of_pairs(inner[2 * i], inner[2 * i + 1]) -
                               means_of_pairs(outer[2 * i], outer[2 * i + 1]));
    return m;
}

static inline FRAMED_HD mm chroma_zipped(mm difference, const struct weights *w)
{
    return uppers_zip(chroma_sum(difference, w, 1), chroma_sum(difference, w, 2));
}

// U and V, alternating.
static inline FRAMED_HD vec_u8 chroma_of(const struct means *m, const struct weights *w)
{
    return (vec_u8)order_packed4(
        MM(packus_epi16)(chroma_zipped(m->difference[0], w), chroma_zipped(m->difference[1], w)));
}

#endif
