// What yuv asks of 256-bit registers. A block is LANES pixels of a row.
#ifndef FRAMED_KERNELS_CPU_YUV_VECTOR_AVX2_H
#define FRAMED_KERNELS_CPU_YUV_VECTOR_AVX2_H

#include <immintrin.h>

#include "kernels/cpu/triples_avx2.h"
#include "kernels/fixed.h"

enum { LANES = 32 };

typedef __m256i vec; // LANES bytes

// Pixels of four bytes, the last of which is anything: vector i holds pixels i * 8 and on.
struct pixels {
    vec v[4];
};

// 2x2 blocks in 16-bit lanes: how much their second channel is more than the first and the third.
struct means {
    vec more[2];
};

// Sums are made to twice the level's scale, so that a level is the upper half of a 32-bit lane.
// Gray has no colour: chroma depends on differences alone.
struct weights {
    vec outer, inner; // luma's of the first and third channel, and of the second
    vec more[3];      // chroma's, [0] unused: of the second channel less the first and the third
    vec round[3];
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

// (x + 2) / 4 of LANES 10-bit samples, which lie at the top of their words or at the bottom.
static inline FRAMED_HD vec load_kept10(const uint8_t *at, bool top)
{
    vec a = load(at), b = load(at + 32);
    if (top) {
        a = _mm256_srli_epi16(a, 6);
        b = _mm256_srli_epi16(b, 6);
    } else {
        a = _mm256_and_si256(a, _mm256_set1_epi16(1023));
        b = _mm256_and_si256(b, _mm256_set1_epi16(1023));
    }
    const vec quarter = _mm256_set1_epi16(1 << 13);
    return quarters_swap(
        _mm256_packus_epi16(_mm256_mulhrs_epi16(a, quarter), _mm256_mulhrs_epi16(b, quarter)));
}

// From the order in which packing within 128-bit lanes leaves four vectors, to theirs; and to the
// order in which unpacking gives four vectors in theirs.
static inline FRAMED_HD vec lanes_join(vec v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static inline FRAMED_HD vec lanes_split(vec v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

// The upper halves of 32-bit lanes as 16-bit lanes, a's and b's by turns.
static inline FRAMED_HD vec uppers_zip(vec a, vec b)
{
    return _mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xaa);
}

// --- 16-bit lanes, LANES / 2 of them

typedef __m256i words;

static inline FRAMED_HD words words_all(int x)
{
    return _mm256_set1_epi16((int16_t)x);
}

static inline FRAMED_HD words words_load(const int16_t *at)
{
    return _mm256_loadu_si256((const void *)at);
}

static inline FRAMED_HD void words_store(int16_t *at, words a)
{
    _mm256_storeu_si256((void *)at, a);
}

static inline FRAMED_HD words words_add(words a, words b)
{
    return _mm256_add_epi16(a, b);
}

static inline FRAMED_HD words words_adds(words a, words b)
{
    return _mm256_adds_epi16(a, b);
}

static inline FRAMED_HD words words_sub(words a, words b)
{
    return _mm256_sub_epi16(a, b);
}

static inline FRAMED_HD words words_mul(words a, words b)
{
    return _mm256_mullo_epi16(a, b);
}

static inline FRAMED_HD words words_mulhrs(words a, words b)
{
    return _mm256_mulhrs_epi16(a, b);
}

static inline FRAMED_HD words words_sra6(words a)
{
    return _mm256_srai_epi16(a, 6);
}

// Saturates to 0..255.
static inline FRAMED_HD vec words_pack(words low, words high)
{
    return quarters_swap(_mm256_packus_epi16(low, high));
}

static inline FRAMED_HD void words_store_zipped(int16_t *at, words even, words odd)
{
    even = quarters_swap(even);
    odd = quarters_swap(odd);
    words_store(at, _mm256_unpacklo_epi16(even, odd));
    words_store(at + LANES / 2, _mm256_unpackhi_epi16(even, odd));
}

// --- pixels

static inline FRAMED_HD struct pixels pixels_of_4(const uint8_t *at)
{
    return (struct pixels){{load(at), load(at + 32), load(at + 64), load(at + 96)}};
}

// 24 bytes are 12 and 12: the second lane is loaded 4 bytes early, to end with them.
static inline FRAMED_HD struct pixels pixels_of_3(const uint8_t *at)
{
    const vec order = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, //
                                       4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
    struct pixels p;
    for (int i = 0; i < 4; i++)
        p.v[i] = _mm256_shuffle_epi8(load_lanes(at + i * 24, at + i * 24 + 8), order);
    return p;
}

static inline FRAMED_HD struct pixels pixels_of_planes(vec first, vec second, vec third)
{
    first = lanes_split(first);
    second = lanes_split(second);
    third = lanes_split(third);
    const vec low = _mm256_unpacklo_epi8(first, second), high = _mm256_unpackhi_epi8(first, second);
    const vec low3 = _mm256_unpacklo_epi8(third, third), high3 = _mm256_unpackhi_epi8(third, third);
    return (struct pixels){{_mm256_unpacklo_epi16(low, low3), _mm256_unpackhi_epi16(low, low3),
                            _mm256_unpacklo_epi16(high, high3),
                            _mm256_unpackhi_epi16(high, high3)}};
}

// --- levels

static inline FRAMED_HD vec pair_of(int low, int high)
{
    return _mm256_set1_epi32((int)((uint32_t)high << 16 | (low & 0xffff)));
}

// `reversed`: the pixels come as B, G and R. Negative weights have one bit more.
static inline struct weights weights_of(const struct rgb_to_yuv *c, bool reversed)
{
    struct weights w;
    const int scale = 1 << (15 - c->shift); // so that every matrix shifts by 15
    for (int i = 0; i < 3; i++) {
        const int first = c->row[i][reversed ? 2 : 0] * scale;
        const int second = c->row[i][1] * scale;
        const int third = c->row[i][reversed ? 0 : 2] * scale;
        if (i == 0) {
            w.outer = pair_of(2 * first, 2 * third);
            w.inner = pair_of(second, second);
        }
        w.more[i] = pair_of(-2 * first, -2 * third);
        w.round[i] = _mm256_set1_epi32(c->round[i] * scale * 2);
    }
    return w;
}

// In 16-bit lanes: the first and the third channel; the second twice.
static inline FRAMED_HD vec outer_of(vec v)
{
    return _mm256_and_si256(v, _mm256_set1_epi32(0x00ff00ff));
}

static inline FRAMED_HD vec inner_of(vec v)
{
    return _mm256_shuffle_epi8(
        v, order_of(_mm_setr_epi8(1, -1, 1, -1, 5, -1, 5, -1, 9, -1, 9, -1, 13, -1, 13, -1)));
}

static inline FRAMED_HD vec luma_sum(vec v, const struct weights *w)
{
    const vec sum = _mm256_add_epi32(_mm256_madd_epi16(outer_of(v), w->outer),
                                     _mm256_madd_epi16(inner_of(v), w->inner));
    return _mm256_add_epi32(sum, w->round[0]);
}

static inline FRAMED_HD vec chroma_sum(vec more, const struct weights *w, int c)
{
    return _mm256_add_epi32(w->round[c], _mm256_madd_epi16(more, w->more[c]));
}

static inline FRAMED_HD vec level_sum(vec v, const struct weights *w, int c)
{
    return c == 0 ? luma_sum(v, w) : chroma_sum(_mm256_sub_epi16(inner_of(v), outer_of(v)), w, c);
}

// From four vectors of sums.
static inline FRAMED_HD vec levels_of(vec a, vec b, vec c, vec d)
{
    const vec order = order_of(_mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
    const vec packed = _mm256_packus_epi16(uppers_zip(a, b), uppers_zip(c, d));
    return lanes_join(_mm256_shuffle_epi8(packed, order));
}

static inline FRAMED_HD vec levels(const struct pixels *p, const struct weights *w, int c)
{
    return levels_of(level_sum(p->v[0], w, c), level_sum(p->v[1], w, c), level_sum(p->v[2], w, c),
                     level_sum(p->v[3], w, c));
}

// Four vectors with 12 bytes in each lane. What a store of 32 bytes writes behind its 24 the next
// one writes over; the last ends on time.
static inline FRAMED_HD void store_twelves(uint8_t *at, const vec v[4])
{
    const vec order = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    for (int i = 0; i < 3; i++)
        store(at + i * 24, _mm256_permutevar8x32_epi32(v[i], order));
    const vec last = _mm256_permutevar8x32_epi32(v[3], order);
    _mm_storeu_si128((void *)(at + 72), _mm256_castsi256_si128(last));
    _mm_storel_epi64((void *)(at + 88), _mm256_extracti128_si256(last, 1));
}

static inline FRAMED_HD vec triples_of(vec v, const struct weights *w)
{
    const vec yu = uppers_zip(level_sum(v, w, 0), level_sum(v, w, 1));
    const vec packed = _mm256_packus_epi16(yu, level_sum(v, w, 2));
    return _mm256_shuffle_epi8(
        packed, order_of(_mm_setr_epi8(0, 1, 9, 2, 3, 11, 4, 5, 13, 6, 7, 15, -1, -1, -1, -1)));
}

static inline FRAMED_HD void store_yuv24(uint8_t *at, const struct pixels *p,
                                         const struct weights *w)
{
    const vec v[4] = {triples_of(p->v[0], w), triples_of(p->v[1], w), triples_of(p->v[2], w),
                      triples_of(p->v[3], w)};
    store_twelves(at, v);
}

// --- 4:2:0

static inline FRAMED_HD vec lumas(const struct pixels *p, const struct weights *w)
{
    return levels(p, w, 0);
}

// block_mean of the pairs of a and b, which are sums of two rows.
static inline FRAMED_HD vec means_of_pairs(vec a, vec b)
{
    const __m256 fa = _mm256_castsi256_ps(a), fb = _mm256_castsi256_ps(b);
    const vec even = _mm256_castps_si256(_mm256_shuffle_ps(fa, fb, 0x88));
    const vec odd = _mm256_castps_si256(_mm256_shuffle_ps(fa, fb, 0xdd));
    return _mm256_mulhrs_epi16(_mm256_add_epi16(even, odd), _mm256_set1_epi16(1 << 13));
}

static inline FRAMED_HD struct means means_of(const struct pixels *top, const struct pixels *bottom)
{
    vec outer[4], inner[4];
    for (int i = 0; i < 4; i++) {
        outer[i] = _mm256_add_epi16(outer_of(top->v[i]), outer_of(bottom->v[i]));
        inner[i] = _mm256_add_epi16(inner_of(top->v[i]), inner_of(bottom->v[i]));
    }
    struct means m;
    for (int i = 0; i < 2; i++)
        m.more[i] = _mm256_sub_epi16(means_of_pairs(inner[2 * i], inner[2 * i + 1]),
                                     means_of_pairs(outer[2 * i], outer[2 * i + 1]));
    return m;
}

static inline FRAMED_HD vec chroma_zipped(vec more, const struct weights *w)
{
    return uppers_zip(chroma_sum(more, w, 1), chroma_sum(more, w, 2));
}

// U and V by turns.
static inline FRAMED_HD vec chroma_of(const struct means *m, const struct weights *w)
{
    return lanes_join(
        _mm256_packus_epi16(chroma_zipped(m->more[0], w), chroma_zipped(m->more[1], w)));
}

#endif
