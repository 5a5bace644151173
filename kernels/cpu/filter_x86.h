// Sums of weighed samples in vectors of AVX2 and AVX-512: see filter_neon.h, which says the same in
// NEON's words.
#ifndef FRAMED_KERNELS_CPU_FILTER_X86_H
#define FRAMED_KERNELS_CPU_FILTER_X86_H

#include "kernels/cpu/vector_x86.h"

// Two rows' weights, the high parts or the low ones, for all pairs of bytes.
static inline FRAMED_HD vec_u8 weights_of_pair(int first, int second)
{
    return (vec_u8)all_s16(first | second << 8);
}

// Sums of a column's samples by high and by low parts of weights, in the order in which unpacking
// leaves bytes.
struct column_sums {
    vec_u16 high[2], low[2];
};

static inline FRAMED_HD void column_sums_add(struct column_sums *s, vec_u8 a, vec_u8 b, vec_u8 high,
                                             vec_u8 low, bool centred)
{
    const mm pairs[2] = {MM(unpacklo_epi8)((mm)a, (mm)b), MM(unpackhi_epi8)((mm)a, (mm)b)};
    for (int i = 0; i < 2; i++) { // the first factor is unsigned, the second signed
        s->high[i] += (vec_u16)(centred ? MM(maddubs_epi16)((mm)high, pairs[i])
                                        : MM(maddubs_epi16)(pairs[i], (mm)high));
        s->low[i] += (vec_u16)(centred ? MM(maddubs_epi16)((mm)low, pairs[i])
                                       : MM(maddubs_epi16)(pairs[i], (mm)low));
    }
}

static inline FRAMED_HD void columns_store(int16_t *to, vec_s16 a, vec_s16 b)
{
#if defined(__AVX512VBMI__)
    const mm low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const mm high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    store_u8(to, (vec_u8)_mm512_permutex2var_epi64((mm)a, low, (mm)b));
    store_u8(to + LANES, (vec_u8)_mm512_permutex2var_epi64((mm)a, high, (mm)b));
#else
    store_u8(to, (vec_u8)_mm256_permute2x128_si256((mm)a, (mm)b, 0x20));
    store_u8(to + LANES, (vec_u8)_mm256_permute2x128_si256((mm)a, (mm)b, 0x31));
#endif
}

// --- rows: eight output pixels at a time, those with even numbers in the lower half of a register

enum { DOTS = 8 };

static inline FRAMED_HD __m256i both_load(const int16_t *even, const int16_t *odd)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)even)),
                                   _mm_loadu_si128((const void *)odd), 1);
}

// Eight sums, as hadd leaves them.
static inline FRAMED_HD void dots_store(int16_t *to, __m256i sums)
{
    const __m256i rounded =
        _mm256_srai_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32(WEIGHT_ONE / 2)), WEIGHT_BITS);
    const __m128i odd = _mm_slli_epi32(_mm256_extracti128_si256(rounded, 1), 16);
    const __m128i even = _mm256_castsi256_si128(rounded);
    _mm_storeu_si128((void *)to, _mm_blend_epi16(even, odd, 0xaa));
}

// Weights of two pixels side by side.
static inline FRAMED_HD __m256i weights_load(const int16_t *even, int stride)
{
    return stride == 8 ? _mm256_loadu_si256((const void *)even) : both_load(even, even + stride);
}

static inline FRAMED_HD void dots_make(int16_t *to, const int16_t *row, const int32_t at[DOTS],
                                       const int16_t *weights, int stride, int most)
{
    __m256i sum[4];
    for (int k = 0; k < 4; k++) {
        const int16_t *even = row + at[2 * k], *odd = row + at[2 * k + 1];
        const int16_t *w = weights + 2 * k * stride;
        sum[k] = _mm256_madd_epi16(both_load(even, odd), weights_load(w, stride));
        for (int i = 8; i < most; i += 8)
            sum[k] = _mm256_add_epi32(sum[k], _mm256_madd_epi16(both_load(even + i, odd + i),
                                                                weights_load(w + i, stride)));
    }
    dots_store(to, _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]),
                                     _mm256_hadd_epi32(sum[2], sum[3])));
}

// Four samples of each of two components that lie by turns, times the first or the second half of
// eight weights.
static inline FRAMED_HD __m256i two_dots(const int16_t *even, const int16_t *odd, __m256i weights,
                                         bool second)
{
    const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, //
                                           0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m256i half =
        second ? _mm256_shuffle_epi32(weights, 0xee) : _mm256_shuffle_epi32(weights, 0x44);
    return _mm256_madd_epi16(_mm256_shuffle_epi8(both_load(even, odd), order), half);
}

static inline FRAMED_HD void dots_make_two(int16_t *first, int16_t *second, const int16_t *row,
                                           const int32_t at[DOTS], const int16_t *weights,
                                           int stride, int most)
{
    __m256i sum[4];
    for (int k = 0; k < 4; k++) {
        const int16_t *even = row + 2 * at[2 * k], *odd = row + 2 * at[2 * k + 1];
        const int16_t *w = weights + 2 * k * stride;
        sum[k] = two_dots(even, odd, weights_load(w, stride), false);
        for (int i = 4; i < most; i += 4)
            sum[k] = _mm256_add_epi32(sum[k], two_dots(even + 2 * i, odd + 2 * i,
                                                       weights_load(w + (i & ~7), stride), i & 4));
    }
    const __m256 low = (__m256)_mm256_hadd_epi32(sum[0], sum[1]);
    const __m256 high = (__m256)_mm256_hadd_epi32(sum[2], sum[3]);
    dots_store(first, (__m256i)_mm256_shuffle_ps(low, high, 0x88));
    dots_store(second, (__m256i)_mm256_shuffle_ps(low, high, 0xdd));
}

#if defined(__AVX512VBMI__)

// --- rows where 16 output pixels see no more than 64 words of sums: these are looked up in
// registers

#define WINDOWS
enum { WINDOW = 64, WINDOW_PIXELS = 16, WINDOW_PAIRS = 4, WINDOW_STRIP = 1024 };

struct windows {
    int32_t base[WINDOW_STRIP / WINDOW_PIXELS];              // the first word
    alignas(64) uint16_t index[2 * WINDOW_STRIP];            // of a pixel's first two samples
    alignas(64) int32_t weights[WINDOW_PAIRS][WINDOW_STRIP]; // of two samples
};

// False where they see more, or are made of more samples. `turns`: words from a sample to the next.
static inline bool windows_init(struct windows *w, const int32_t *at, const int16_t *weights,
                                int stride, int most, int n, int turns)
{
    const int pairs = (most + 1) / 2;
    if (pairs > WINDOW_PAIRS || n > WINDOW_STRIP)
        return false;
    for (int i = 0; i < n; i += WINDOW_PIXELS) {
        int32_t lo = at[i], last = at[i];
        for (int k = i; k < i + WINDOW_PIXELS; k++) {
            lo = at[k] < lo ? at[k] : lo;
            last = at[k] > last ? at[k] : last;
        }
        if ((last + 2 * pairs - lo) * turns > WINDOW)
            return false;
        w->base[i / WINDOW_PIXELS] = lo * turns;
        for (int k = i; k < i + WINDOW_PIXELS; k++) {
            w->index[2 * k] = (uint16_t)((at[k] - lo) * turns);
            w->index[2 * k + 1] = (uint16_t)((at[k] - lo + 1) * turns);
        }
    }
    for (int j = 0; j < pairs; j++)
        for (int i = 0; i < n; i++)
            memcpy(&w->weights[j][i], weights + (ptrdiff_t)i * stride + 2 * j, sizeof(int32_t));
    return true;
}

// The samples `second` words behind those that the index names.
static inline FRAMED_HD void windows_make(int16_t *to, const int16_t *row, const struct windows *w,
                                          int n, int turns, int second, int pairs)
{
    for (int i = 0; i < n; i += WINDOW_PIXELS) {
        const int16_t *window = row + w->base[i / WINDOW_PIXELS];
        const mm low = (mm)load_u8(window), high = (mm)load_u8(window + LANES);
        vec_s16 index = load_s16(w->index + 2 * i) + (int16_t)second;
        mm sum = (mm)all_s32(WEIGHT_ONE / 2);
        for (int j = 0; j < pairs; j++, index += (int16_t)(2 * turns))
            sum = dot(sum, _mm512_permutex2var_epi16(low, (mm)index, high),
                      (mm)load_u8(&w->weights[j][i]));
        _mm256_storeu_si256((void *)(to + i),
                            _mm512_cvtepi32_epi16(_mm512_srai_epi32(sum, WEIGHT_BITS)));
    }
}

#endif

#endif
