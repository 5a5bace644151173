// vec and flt in AVX-512: F, BW, VL, DQ, VBMI, and VNNI, which its files are compiled for too.
#ifndef FRAMED_KERNELS_CPU_VECTOR_AVX512_H
#define FRAMED_KERNELS_CPU_VECTOR_AVX512_H

#include <immintrin.h>

#include "kernels/cpu/triples_avx512.h"
#include "kernels/fixed.h"

enum { LANES = 32, FLOATS = 16 };

typedef __m512i vec;
typedef __m512 flt;

static inline FRAMED_HD vec vec_load(const void *at)
{
    return _mm512_loadu_si512(at);
}

static inline FRAMED_HD void vec_store(void *at, vec a)
{
    _mm512_storeu_si512(at, a);
}

static inline FRAMED_HD vec vec_all(int x)
{
    return _mm512_set1_epi16((short)x);
}

static inline FRAMED_HD vec vec_and(vec a, vec b)
{
    return _mm512_and_si512(a, b);
}

static inline FRAMED_HD vec vec_add(vec a, vec b)
{
    return _mm512_add_epi16(a, b);
}

static inline FRAMED_HD vec vec_sub(vec a, vec b)
{
    return _mm512_sub_epi16(a, b);
}

static inline FRAMED_HD vec vec_adds(vec a, vec b)
{
    return _mm512_adds_epi16(a, b);
}

static inline FRAMED_HD vec vec_mulhrs(vec a, vec b)
{
    return _mm512_mulhrs_epi16(a, b);
}

static inline FRAMED_HD vec vec_shl(vec a, int bits)
{
    return _mm512_slli_epi16(a, bits);
}

static inline FRAMED_HD vec vec_shr(vec a, int bits) // of unsigned lanes
{
    return _mm512_srli_epi16(a, bits);
}

static inline FRAMED_HD vec vec_sar(vec a, int bits)
{
    return _mm512_srai_epi16(a, bits);
}

// Of lanes that hold two samples, the left one in the low byte: both times the bytes of `weights`,
// which sum to 128: 7 fraction bits, centred on 128. And how much the right one is more.
static inline FRAMED_HD vec vec_between(vec pairs, vec weights)
{
    return _mm512_maddubs_epi16(weights, _mm512_xor_si512(pairs, _mm512_set1_epi8(-128)));
}

static inline FRAMED_HD vec vec_step7(vec pairs)
{
    return vec_shl(_mm512_maddubs_epi16(pairs, _mm512_set1_epi16(0x40c0)), 1);
}

// The 2 * LANES levels of a, then b: level_of each lane.
static inline FRAMED_HD void vec_store_levels(uint8_t *to, vec a, vec b)
{
    const vec order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    const vec packed = _mm512_packus_epi16(vec_sar(a, 6), vec_sar(b, 6));
    vec_store(to, _mm512_permutexvar_epi64(order, packed));
}

// How vec_gather finds bytes: a run of `lanes` lanes takes them from a window of `bytes` bytes.
struct reach {
    int lanes, bytes;
};

enum { REACHES = 4 };

static const struct reach reaches[REACHES] = {{32, 64}, {32, 128}, {16, 128}, {8, 128}};

// Puts the bytes that `which` names in place of their indices.
static inline FRAMED_HD vec window_look_up(const uint8_t *at, vec index, __mmask64 which)
{
    return _mm512_mask2_permutex2var_epi8(vec_load(at), index, which, vec_load(at + 64));
}

// For each lane two bytes of `row`, chosen by the lane's bytes of `index`, which count from
// base[lane / 4]. `reach`: a constant.
static inline FRAMED_HD vec vec_gather(int reach, const uint8_t *row, const int32_t *base,
                                       vec index)
{
    if (reach == 0)
        return _mm512_permutexvar_epi8(index, vec_load(row + base[0]));
    if (reach == 1)
        return _mm512_permutex2var_epi8(vec_load(row + base[0]), index,
                                        vec_load(row + base[0] + 64));
    if (reach == 2) {
        index = window_look_up(row + base[0], index, 0xffffffff);
        return window_look_up(row + base[4], index, 0xffffffff00000000);
    }
    index = window_look_up(row + base[0], index, 0xffff);
    index = window_look_up(row + base[2], index, 0xffff0000);
    index = window_look_up(row + base[4], index, 0xffff00000000);
    return window_look_up(row + base[6], index, 0xffff000000000000);
}

// 3 * 64 bytes: r, g and b of 64 pixels in turn.
static inline FRAMED_HD void bytes_interleave(uint8_t *to, const uint8_t *r, const uint8_t *g,
                                              const uint8_t *b)
{
    store_triples(to, vec_load(r), vec_load(g), vec_load(b));
}

static inline FRAMED_HD flt flt_load(const float *at)
{
    return _mm512_loadu_ps(at);
}

static inline FRAMED_HD flt flt_levels(const uint8_t *at)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)at)));
}

static inline FRAMED_HD flt flt_add(flt a, flt b)
{
    return _mm512_add_ps(a, b);
}

static inline FRAMED_HD flt flt_fma(flt a, flt b, flt c) // a * b + c
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline FRAMED_HD void flt_store(float *to, flt a)
{
    _mm512_storeu_ps(to, a);
}

static inline FRAMED_HD void flt_store_half(uint16_t *to, flt a)
{
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}

#endif
