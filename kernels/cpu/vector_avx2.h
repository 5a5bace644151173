// vec and flt in AVX2, FMA and F16C.
#ifndef FRAMED_KERNELS_CPU_VECTOR_AVX2_H
#define FRAMED_KERNELS_CPU_VECTOR_AVX2_H

#include <immintrin.h>

#include "kernels/cpu/triples_avx2.h"
#include "kernels/fixed.h"

enum { LANES = 16, FLOATS = 8 };

typedef __m256i vec;
typedef __m256 flt;

static inline FRAMED_HD vec vec_load(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

static inline FRAMED_HD void vec_store(void *at, vec a)
{
    _mm256_storeu_si256((__m256i *)at, a);
}

static inline FRAMED_HD vec vec_all(int x)
{
    return _mm256_set1_epi16((short)x);
}

static inline FRAMED_HD vec vec_and(vec a, vec b)
{
    return _mm256_and_si256(a, b);
}

static inline FRAMED_HD vec vec_add(vec a, vec b)
{
    return _mm256_add_epi16(a, b);
}

static inline FRAMED_HD vec vec_sub(vec a, vec b)
{
    return _mm256_sub_epi16(a, b);
}

static inline FRAMED_HD vec vec_adds(vec a, vec b)
{
    return _mm256_adds_epi16(a, b);
}

static inline FRAMED_HD vec vec_mulhrs(vec a, vec b)
{
    return _mm256_mulhrs_epi16(a, b);
}

static inline FRAMED_HD vec vec_shl(vec a, int bits)
{
    return _mm256_slli_epi16(a, bits);
}

static inline FRAMED_HD vec vec_shr(vec a, int bits) // of unsigned lanes
{
    return _mm256_srli_epi16(a, bits);
}

static inline FRAMED_HD vec vec_sar(vec a, int bits)
{
    return _mm256_srai_epi16(a, bits);
}

// Of lanes that hold two samples, the left one in the low byte: both times the bytes of `weights`,
// which sum to 128: 7 fraction bits, centred on 128. And how much the right one is more.
static inline FRAMED_HD vec vec_between(vec pairs, vec weights)
{
    return _mm256_maddubs_epi16(weights, _mm256_xor_si256(pairs, _mm256_set1_epi8(-128)));
}

static inline FRAMED_HD vec vec_step7(vec pairs)
{
    return vec_shl(_mm256_maddubs_epi16(pairs, _mm256_set1_epi16(0x40c0)), 1);
}

// The 2 * LANES levels of a, then b: level_of each lane.
static inline FRAMED_HD void vec_store_levels(uint8_t *to, vec a, vec b)
{
    const vec packed = _mm256_packus_epi16(vec_sar(a, 6), vec_sar(b, 6));
    vec_store(to, _mm256_permute4x64_epi64(packed, 0xd8));
}

// How vec_gather finds bytes: a run of `lanes` lanes takes them from a window of `bytes` bytes.
struct reach {
    int lanes, bytes;
};

enum { REACHES = 3 };

static const struct reach reaches[REACHES] = {{8, 16}, {4, 16}, {8, 64}};

static inline FRAMED_HD vec halves_load(const uint8_t *low, const uint8_t *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
                                   _mm_loadu_si128((const __m128i *)high), 1);
}

// For each lane two bytes of `row`, chosen by the lane's bytes of `index`, which count from
// base[lane / 4]. `reach`: a constant. A shuffle gives 0 where its index is 128 or more.
static inline FRAMED_HD vec vec_gather(int reach, const uint8_t *row, const int32_t *base,
                                       vec index)
{
    const uint8_t *low = row + base[0], *high = row + base[2];
    if (reach == 0)
        return _mm256_shuffle_epi8(halves_load(low, high), index);
    if (reach == 1) {
        const vec even = _mm256_shuffle_epi8(halves_load(low, high), index);
        const vec odd = _mm256_shuffle_epi8(halves_load(row + base[1], row + base[3]), index);
        return _mm256_blend_epi32(even, odd, 0xcc);
    }
    vec found = _mm256_setzero_si256();
    for (int at = 0; at < reaches[reach].bytes; at += 16) {
        const vec here = _mm256_sub_epi8(index, _mm256_set1_epi8((char)at));
        const vec inside = _mm256_adds_epu8(here, _mm256_set1_epi8(0x70));
        found =
            _mm256_or_si256(found, _mm256_shuffle_epi8(halves_load(low + at, high + at), inside));
    }
    return found;
}

// 3 * 32 bytes: r, g and b of 32 pixels in turn.
static inline FRAMED_HD void bytes_interleave(uint8_t *to, const uint8_t *r, const uint8_t *g,
                                              const uint8_t *b)
{
    store_triples(to, vec_load(r), vec_load(g), vec_load(b));
}

static inline FRAMED_HD flt flt_load(const float *at)
{
    return _mm256_loadu_ps(at);
}

static inline FRAMED_HD flt flt_levels(const uint8_t *at)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)at)));
}

static inline FRAMED_HD flt flt_add(flt a, flt b)
{
    return _mm256_add_ps(a, b);
}

static inline FRAMED_HD flt flt_fma(flt a, flt b, flt c) // a * b + c
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline FRAMED_HD void flt_store(float *to, flt a)
{
    _mm256_storeu_ps(to, a);
}

static inline FRAMED_HD void flt_store_half(uint16_t *to, flt a)
{
    _mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}

#endif
