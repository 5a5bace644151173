// What yuv asks of 256-bit registers. A block is LANES pixels of a row.
#ifndef FRAMED_KERNELS_YUV_VECTOR_AVX2_H
#define FRAMED_KERNELS_YUV_VECTOR_AVX2_H

#include <immintrin.h>

#include "kernels/fixed.h"

enum { LANES = 32 };

typedef __m256i vec; // LANES bytes

// Pixels as the 16-bit pairs that vpmaddwd multiplies: of the first and the third byte, and of the
// second and a fourth whose weight is 0. Vector i holds pixels i * LANES / 4 and on; for means of
// 2x2 blocks, of which a block of pixels has half as many, only the first two hold anything.
struct pixels {
    vec outer[4], inner[4];
};

struct weights {
    vec outer[3], inner[3], round[3];
};

// --- bytes

static inline FRAMED_HD vec load(const uint8_t *at)
{
    return _mm256_loadu_si256((const void *)at);
}

static inline FRAMED_HD vec load_lanes(const uint8_t *low, const uint8_t *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)low)),
                                   _mm_loadu_si128((const void *)high), 1);
}

static inline FRAMED_HD void store(uint8_t *at, vec v)
{
    _mm256_storeu_si256((void *)at, v);
}

// The first half of a result from `low`, the second from `high`.
static inline FRAMED_HD vec halves_load(const uint8_t *low, const uint8_t *high)
{
    return load_lanes(low, high);
}

static inline FRAMED_HD void halves_store(uint8_t *low, uint8_t *high, vec v)
{
    _mm_storeu_si128((void *)low, _mm256_castsi256_si128(v));
    _mm_storeu_si128((void *)high, _mm256_extracti128_si256(v, 1));
}

// The same order for the bytes of both 128-bit lanes.
static inline FRAMED_HD vec order_of(__m128i order)
{
    return _mm256_broadcastsi128_si256(order);
}

// Swaps the inner two quarters.
static inline FRAMED_HD vec quarters_swap(vec v)
{
    return _mm256_permute4x64_epi64(v, 0xd8);
}

// a0 a1 ... b0 b1 ... to a0 b0 a1 b1 ..., and back.
static inline FRAMED_HD vec halves_zip(vec v)
{
    const vec order = order_of(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    return _mm256_shuffle_epi8(quarters_swap(v), order);
}

static inline FRAMED_HD vec halves_split(vec v)
{
    const vec order = order_of(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    return quarters_swap(_mm256_shuffle_epi8(v, order));
}

// Since 3 has an inverse modulo 16, one order of a component's 16 bytes serves all three 16-byte
// parts of their 48: they differ only in which bytes they take.
static inline FRAMED_HD void store_triples(uint8_t *at, vec y, vec u, vec v)
{
    y = _mm256_shuffle_epi8(
        y, order_of(_mm_setr_epi8(0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5)));
    u = _mm256_shuffle_epi8(
        u, order_of(_mm_setr_epi8(5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10)));
    v = _mm256_shuffle_epi8(
        v, order_of(_mm_setr_epi8(10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15)));
    const vec third0 =
        order_of(_mm_setr_epi8(-1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1));
    const vec third1 = order_of(_mm_setr_epi8(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0));
    const vec third2 = order_of(_mm_setr_epi8(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0));
    const vec a = _mm256_blendv_epi8(_mm256_blendv_epi8(v, y, third0), u, third1);
    const vec b = _mm256_blendv_epi8(_mm256_blendv_epi8(v, y, third2), u, third0);
    const vec c = _mm256_blendv_epi8(_mm256_blendv_epi8(v, y, third1), u, third2);
    store(at, _mm256_permute2x128_si256(a, b, 0x20));
    store(at + 32, _mm256_blend_epi32(c, a, 0xf0));
    store(at + 64, _mm256_permute2x128_si256(b, c, 0x31));
}

// --- pixels

static inline FRAMED_HD void pixels_put(struct pixels *p, int i, vec v)
{
    p->outer[i] = _mm256_and_si256(v, _mm256_set1_epi32(0x00ff00ff));
    p->inner[i] = _mm256_srli_epi16(v, 8);
}

static inline FRAMED_HD struct pixels pixels_of_4(const uint8_t *at)
{
    struct pixels p;
    for (int i = 0; i < 4; i++)
        pixels_put(&p, i, load(at + i * 32));
    return p;
}

// 24 bytes are 12 and 12: the second lane is loaded 4 bytes early, to end with them.
static inline FRAMED_HD struct pixels pixels_of_3(const uint8_t *at)
{
    const vec order = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, //
                                       4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
    struct pixels p;
    for (int i = 0; i < 4; i++) {
        const vec v = load_lanes(at + i * 24, at + i * 24 + 8);
        pixels_put(&p, i, _mm256_shuffle_epi8(v, order));
    }
    return p;
}

// To the order in which unpacking within 128-bit lanes gives four vectors in theirs.
static inline FRAMED_HD vec lanes_split(vec v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

// From the order in which packing leaves four vectors, to theirs.
static inline FRAMED_HD vec lanes_join(vec v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static inline FRAMED_HD struct pixels pixels_of_planes(vec first, vec second, vec third)
{
    const vec zero = _mm256_setzero_si256();
    first = lanes_split(first);
    second = lanes_split(second);
    third = lanes_split(third);
    const vec low = _mm256_unpacklo_epi8(first, third), high = _mm256_unpackhi_epi8(first, third);
    const vec second_low = _mm256_unpacklo_epi8(second, zero);
    const vec second_high = _mm256_unpackhi_epi8(second, zero);
    return (struct pixels){
        .outer = {_mm256_unpacklo_epi8(low, zero), _mm256_unpackhi_epi8(low, zero),
                  _mm256_unpacklo_epi8(high, zero), _mm256_unpackhi_epi8(high, zero)},
        .inner = {_mm256_unpacklo_epi16(second_low, zero), _mm256_unpackhi_epi16(second_low, zero),
                  _mm256_unpacklo_epi16(second_high, zero),
                  _mm256_unpackhi_epi16(second_high, zero)},
    };
}

// block_mean of the pairs of a and b, which are sums of two rows.
static inline FRAMED_HD vec means_of_pairs(vec a, vec b)
{
    const __m256 fa = _mm256_castsi256_ps(a), fb = _mm256_castsi256_ps(b);
    const vec even = _mm256_castps_si256(_mm256_shuffle_ps(fa, fb, 0x88));
    const vec odd = _mm256_castps_si256(_mm256_shuffle_ps(fa, fb, 0xdd));
    const vec sum = _mm256_add_epi16(_mm256_add_epi16(even, odd), _mm256_set1_epi16(2));
    return _mm256_srli_epi16(sum, 2);
}

static inline FRAMED_HD struct pixels pixels_means(struct pixels top, struct pixels bottom)
{
    struct pixels p = top;
    for (int i = 0; i < 4; i++) {
        top.outer[i] = _mm256_add_epi16(top.outer[i], bottom.outer[i]);
        top.inner[i] = _mm256_add_epi16(top.inner[i], bottom.inner[i]);
    }
    for (int i = 0; i < 2; i++) {
        p.outer[i] = means_of_pairs(top.outer[2 * i], top.outer[2 * i + 1]);
        p.inner[i] = means_of_pairs(top.inner[2 * i], top.inner[2 * i + 1]);
    }
    return p;
}

// --- levels

// `reversed`: the pixels come as B, G and R.
static inline struct weights weights_of(const struct rgb_to_yuv *c, bool reversed)
{
    struct weights w;
    const int scale = 1 << (15 - c->shift); // so that every matrix shifts by 15
    for (int i = 0; i < 3; i++) {
        const int first = c->row[i][reversed ? 2 : 0] * scale;
        const int third = c->row[i][reversed ? 0 : 2] * scale;
        w.outer[i] = _mm256_set1_epi32((int)((uint32_t)third << 16 | (first & 0xffff)));
        w.inner[i] = _mm256_set1_epi32(c->row[i][1] * scale & 0xffff);
        w.round[i] = _mm256_set1_epi32(c->round[i] * scale);
    }
    return w;
}

static inline FRAMED_HD vec level32(const struct pixels *p, int i, const struct weights *w, int c)
{
    const vec outer = _mm256_madd_epi16(p->outer[i], w->outer[c]);
    const vec inner = _mm256_madd_epi16(p->inner[i], w->inner[c]);
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_add_epi32(outer, inner), w->round[c]), 15);
}

static inline FRAMED_HD vec level16(const struct pixels *p, int i, const struct weights *w, int c)
{
    return _mm256_packs_epi32(level32(p, i, w, c), level32(p, i + 1, w, c));
}

static inline FRAMED_HD vec levels(const struct pixels *p, const struct weights *w, int c)
{
    return lanes_join(_mm256_packus_epi16(level16(p, 0, w, c), level16(p, 2, w, c)));
}

// U of the means, then V. Packing leaves 8 U and 8 V in each 128-bit lane: every other pair of
// blocks.
static inline FRAMED_HD vec levels_of_means(const struct pixels *p, const struct weights *w)
{
    const vec packed = _mm256_packus_epi16(level16(p, 0, w, 1), level16(p, 0, w, 2));
    const vec order = order_of(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    return _mm256_shuffle_epi8(quarters_swap(packed), order);
}

#endif
