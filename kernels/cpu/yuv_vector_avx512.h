// What yuv asks of 512-bit registers. A block is LANES pixels of a row.
#ifndef FRAMED_KERNELS_CPU_YUV_VECTOR_AVX512_H
#define FRAMED_KERNELS_CPU_YUV_VECTOR_AVX512_H

#include <immintrin.h>

#include "kernels/cpu/triples_avx512.h"
#include "kernels/fixed.h"

enum { LANES = 64 };

typedef __m512i vec; // LANES bytes

// Pixels as the 16-bit pairs that vpdpwssd multiplies: the first and the third byte, and the second
// twice. Vector i holds pixels i * 16 and on.
struct pixels {
    vec outer[4], inner[4];
};

// 2x2 blocks, how much the second byte is more than the first and the third, in the order in which
// pairs of 128-bit lanes leave them.
struct means {
    vec more[2];
};

// Sums are made to twice the level's scale, so that a level is the upper half of a 32-bit lane.
// Gray has no colour: chroma depends on differences alone.
struct weights {
    vec outer, inner; // luma's
    vec more[3];      // chroma's, [0] unused: of the second byte less the first and the third
    vec round[3];
};

// --- tables

#define FOUR(X, i)    X(i), X((i) + 1), X((i) + 2), X((i) + 3)
#define SIXTEEN(X, i) FOUR(X, i), FOUR(X, (i) + 4), FOUR(X, (i) + 8), FOUR(X, (i) + 12)
#define LINE(X, i)    SIXTEEN(X, i), SIXTEEN(X, (i) + 16), SIXTEEN(X, (i) + 32), SIXTEEN(X, (i) + 48)
#define TABLE(X)                                                                                   \
    {                                                                                              \
        LINE(X, 0)                                                                                 \
    }

typedef uint8_t table[64] __attribute__((aligned(64)));

#define ZIPPED(i) ((i) / 2 + (i) % 2 * 32)
#define SPLIT(i)  ((i) % 32 * 2 + (i) / 32)
static const table zipped = TABLE(ZIPPED), split = TABLE(SPLIT);

// Three bytes to four; the fourth is anything.
#define WIDE(i) ((i) / 4 * 3 + (i) % 4)
static const table widened = TABLE(WIDE);

// Levels that are the third byte of each 32-bit lane, of two vectors; and the upper half of each.
#define THIRD(i) ((i) % 16 * 4 + 2 + (i) / 16 % 2 * 64)
#define UPPER(i) ((i) / 2 % 16 * 2 + 1 + (i) / 32 * 32) * ((i) % 2 == 0)
static const table thirds = TABLE(THIRD), uppers = TABLE(UPPER);

static inline FRAMED_HD vec table_load(const table t)
{
    return _mm512_load_si512(t);
}

// --- bytes

static inline FRAMED_HD vec load(const uint8_t *at)
{
    return _mm512_loadu_si512(at);
}

static inline FRAMED_HD void store(uint8_t *at, vec v)
{
    _mm512_storeu_si512(at, v);
}

// The first half of a result from `low`, the second from `high`.
static inline FRAMED_HD vec halves_load(const uint8_t *low, const uint8_t *high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const void *)low)),
                              _mm256_loadu_si256((const void *)high), 1);
}

static inline FRAMED_HD void halves_store(uint8_t *low, uint8_t *high, vec v)
{
    _mm256_storeu_si256((void *)low, _mm512_castsi512_si256(v));
    _mm256_storeu_si256((void *)high, _mm512_extracti64x4_epi64(v, 1));
}

// a0 a1 ... b0 b1 ... to a0 b0 a1 b1 ..., and back.
static inline FRAMED_HD vec halves_zip(vec v)
{
    return _mm512_permutexvar_epi8(table_load(zipped), v);
}

static inline FRAMED_HD vec halves_split(vec v)
{
    return _mm512_permutexvar_epi8(table_load(split), v);
}

// From the order in which packing within 128-bit lanes leaves two vectors, to theirs.
static inline FRAMED_HD vec quarters_join(vec v)
{
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), v);
}

// (x + 2) / 4 of LANES 10-bit samples, which lie at the top of their words or at the bottom.
static inline FRAMED_HD vec load_kept10(const uint8_t *at, bool top)
{
    vec a = load(at), b = load(at + 64);
    if (top) {
        a = _mm512_srli_epi16(a, 6);
        b = _mm512_srli_epi16(b, 6);
    } else {
        a = _mm512_and_si512(a, _mm512_set1_epi16(1023));
        b = _mm512_and_si512(b, _mm512_set1_epi16(1023));
    }
    const vec quarter = _mm512_set1_epi16(1 << 13);
    return quarters_join(
        _mm512_packus_epi16(_mm512_mulhrs_epi16(a, quarter), _mm512_mulhrs_epi16(b, quarter)));
}

// From the order in which packing within 128-bit lanes leaves four vectors, to theirs; and, since
// it is its own inverse, to the order in which unpacking gives four vectors in theirs.
static inline FRAMED_HD vec lanes_transpose(vec v)
{
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v);
}

// --- 16-bit lanes, LANES / 2 of them

typedef __m512i words;

static inline FRAMED_HD words words_all(int x)
{
    return _mm512_set1_epi16((int16_t)x);
}

static inline FRAMED_HD words words_load(const int16_t *at)
{
    return _mm512_loadu_si512(at);
}

static inline FRAMED_HD void words_store(int16_t *at, words a)
{
    _mm512_storeu_si512(at, a);
}

static inline FRAMED_HD words words_add(words a, words b)
{
    return _mm512_add_epi16(a, b);
}

static inline FRAMED_HD words words_adds(words a, words b)
{
    return _mm512_adds_epi16(a, b);
}

static inline FRAMED_HD words words_sub(words a, words b)
{
    return _mm512_sub_epi16(a, b);
}

static inline FRAMED_HD words words_mul(words a, words b)
{
    return _mm512_mullo_epi16(a, b);
}

static inline FRAMED_HD words words_mulhrs(words a, words b)
{
    return _mm512_mulhrs_epi16(a, b);
}

static inline FRAMED_HD words words_sra6(words a)
{
    return _mm512_srai_epi16(a, 6);
}

// Saturates to 0..255.
static inline FRAMED_HD vec words_pack(words low, words high)
{
    return quarters_join(_mm512_packus_epi16(low, high));
}

static inline FRAMED_HD void words_store_zipped(int16_t *at, words even, words odd)
{
    const words order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    even = _mm512_permutexvar_epi64(order, even);
    odd = _mm512_permutexvar_epi64(order, odd);
    words_store(at, _mm512_unpacklo_epi16(even, odd));
    words_store(at + LANES / 2, _mm512_unpackhi_epi16(even, odd));
}

// --- pixels

static inline FRAMED_HD void pixels_put(struct pixels *p, int i, vec v)
{
    p->outer[i] = _mm512_and_si512(v, _mm512_set1_epi32(0x00ff00ff));
    p->inner[i] =
        _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(_mm_setr_epi8(1, -1, 1, -1, 5, -1, 5, -1, 9,
                                                                    -1, 9, -1, 13, -1, 13, -1)));
}

static inline FRAMED_HD struct pixels pixels_of_4(const uint8_t *at)
{
    struct pixels p;
    for (int i = 0; i < 4; i++)
        pixels_put(&p, i, load(at + i * 64));
    return p;
}

static inline FRAMED_HD struct pixels pixels_of_3(const uint8_t *at)
{
    struct pixels p;
    for (int i = 0; i < 4; i++) {
        const vec v = _mm512_maskz_loadu_epi32(0x0fff, at + i * 48);
        pixels_put(&p, i, _mm512_permutexvar_epi8(table_load(widened), v));
    }
    return p;
}

static inline FRAMED_HD struct pixels pixels_of_planes(vec first, vec second, vec third)
{
    const vec zero = _mm512_setzero_si512();
    first = lanes_transpose(first);
    second = lanes_transpose(second);
    third = lanes_transpose(third);
    const vec low = _mm512_unpacklo_epi8(first, third), high = _mm512_unpackhi_epi8(first, third);
    const vec second_low = _mm512_unpacklo_epi8(second, zero);
    const vec second_high = _mm512_unpackhi_epi8(second, zero);
    return (struct pixels){
        .outer = {_mm512_unpacklo_epi8(low, zero), _mm512_unpackhi_epi8(low, zero),
                  _mm512_unpacklo_epi8(high, zero), _mm512_unpackhi_epi8(high, zero)},
        .inner = {_mm512_unpacklo_epi16(second_low, second_low),
                  _mm512_unpackhi_epi16(second_low, second_low),
                  _mm512_unpacklo_epi16(second_high, second_high),
                  _mm512_unpackhi_epi16(second_high, second_high)},
    };
}

// block_mean of the pairs of a and b, which are sums of two rows.
static inline FRAMED_HD vec means_of_pairs(vec a, vec b)
{
    const __m512 fa = _mm512_castsi512_ps(a), fb = _mm512_castsi512_ps(b);
    const vec even = _mm512_castps_si512(_mm512_shuffle_ps(fa, fb, 0x88));
    const vec odd = _mm512_castps_si512(_mm512_shuffle_ps(fa, fb, 0xdd));
    return _mm512_mulhrs_epi16(_mm512_add_epi16(even, odd), _mm512_set1_epi16(1 << 13));
}

static inline FRAMED_HD struct means means_of(const struct pixels *top, const struct pixels *bottom)
{
    vec outer[4], inner[4];
    for (int i = 0; i < 4; i++) {
        outer[i] = _mm512_add_epi16(top->outer[i], bottom->outer[i]);
        inner[i] = _mm512_add_epi16(top->inner[i], bottom->inner[i]);
    }
    struct means m;
    for (int i = 0; i < 2; i++)
        m.more[i] = _mm512_sub_epi16(means_of_pairs(inner[2 * i], inner[2 * i + 1]),
                                     means_of_pairs(outer[2 * i], outer[2 * i + 1]));
    return m;
}

// --- levels

static inline FRAMED_HD vec pair_of(int low, int high)
{
    return _mm512_set1_epi32((int)((uint32_t)high << 16 | (low & 0xffff)));
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
        w.round[i] = _mm512_set1_epi32(c->round[i] * scale * 2);
    }
    return w;
}

static inline FRAMED_HD vec luma_sum(const struct pixels *p, int i, const struct weights *w)
{
    return _mm512_dpwssd_epi32(_mm512_dpwssd_epi32(w->round[0], p->outer[i], w->outer), p->inner[i],
                               w->inner);
}

// No luma leaves 8 bits.
static inline FRAMED_HD vec lumas(const struct pixels *p, const struct weights *w)
{
    const vec order = table_load(thirds);
    const vec low = _mm512_permutex2var_epi8(luma_sum(p, 0, w), order, luma_sum(p, 1, w));
    const vec high = _mm512_permutex2var_epi8(luma_sum(p, 2, w), order, luma_sum(p, 3, w));
    return _mm512_mask_blend_epi64(0xf0, low, high);
}

static inline FRAMED_HD vec chroma_sum(vec more, const struct weights *w, int c)
{
    return _mm512_dpwssd_epi32(w->round[c], more, w->more[c]);
}

// Of two vectors.
static inline FRAMED_HD vec chroma16(const vec more[], const struct weights *w, int c)
{
    return _mm512_permutex2var_epi16(chroma_sum(more[0], w, c), table_load(uppers),
                                     chroma_sum(more[1], w, c));
}

struct more {
    vec v[4];
};

static inline FRAMED_HD struct more more_of(const struct pixels *p)
{
    struct more more;
    for (int i = 0; i < 4; i++)
        more.v[i] = _mm512_sub_epi16(p->inner[i], p->outer[i]);
    return more;
}

static inline FRAMED_HD vec chromas(const struct more *more, const struct weights *w, int c)
{
    return quarters_join(_mm512_packus_epi16(chroma16(more->v, w, c), chroma16(more->v + 2, w, c)));
}

static inline FRAMED_HD vec levels(const struct pixels *p, const struct weights *w, int c)
{
    const struct more more = more_of(p);
    return c == 0 ? lumas(p, w) : chromas(&more, w, c);
}

static inline FRAMED_HD void store_yuv24(uint8_t *at, const struct pixels *p,
                                         const struct weights *w)
{
    const struct more more = more_of(p);
    store_triples(at, lumas(p, w), chromas(&more, w, 1), chromas(&more, w, 2));
}

// The upper halves of 32-bit lanes, U's and V's by turns.
static inline FRAMED_HD vec chroma_zipped(vec more, const struct weights *w)
{
    return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(chroma_sum(more, w, 1), 16),
                                   chroma_sum(more, w, 2));
}

// U and V by turns.
static inline FRAMED_HD vec chroma_of(const struct means *m, const struct weights *w)
{
    return lanes_transpose(
        _mm512_packus_epi16(chroma_zipped(m->more[0], w), chroma_zipped(m->more[1], w)));
}

#endif
