// Weighted sums of samples in AVX2 and AVX-512 vectors; filter_neon.h has the same functions for
// NEON.
#ifndef FRAMED_KERNELS_CPU_FILTER_X86_H
#define FRAMED_KERNELS_CPU_FILTER_X86_H

#include "kernels/cpu/vector_x86.h"
#include "kernels/ops.h"

// Weights of two rows, high or low parts, for all pairs of bytes.
static inline FRAMED_HD vec_u8 weights_of_pair(int first, int second)
{
    return (vec_u8)all_s16(first | second << 8);
}

// Loads a block: for triples of samples, three quarters of a register. AVX2's second half starts 4
// bytes early, at byte 8.
static inline FRAMED_HD vec_u8 block_load(const uint8_t *at, bool triples)
{
#if defined(__AVX512VBMI__)
    return triples ? (vec_u8)_mm512_maskz_loadu_epi32(0x0fff, at) : load_u8(at);
#else
    return triples ? (vec_u8)quarters_load(at, at + 8) : load_u8(at);
#endif
}

// Sums of a single row: its samples with full weight.
static inline FRAMED_HD void block_copy(vec_s16 v[2], vec_u8 a)
{
    const mm zero = (mm)(vec_u8){0};
    v[0] = (vec_s16)((vec_u16)MM(unpacklo_epi8)(zero, (mm)a) >> 1);
    v[1] = (vec_s16)((vec_u16)MM(unpackhi_epi8)(zero, (mm)a) >> 1);
}

// Sums of a column's samples times the high and the low parts of weights, in the order of unpacked
// bytes.
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

// --- columns: words, in two halves of 32-bit sums

struct word_sums {
    vec_s32 part[2];
};

typedef vec_s16 word_weights;

// Weights of two rows, alternating.
static inline FRAMED_HD word_weights word_weights_of(const int16_t *two)
{
    int32_t both;
    memcpy(&both, two, sizeof(both));
    return (word_weights)all_s32(both);
}

static inline FRAMED_HD void word_sums_add(struct word_sums *s, vec_s16 a, vec_s16 b,
                                           word_weights w)
{
    const mm low = MM(unpacklo_epi16)((mm)a, (mm)b), high = MM(unpackhi_epi16)((mm)a, (mm)b);
    s->part[0] = (vec_s32)dot((mm)s->part[0], low, (mm)w);
    s->part[1] = (vec_s32)dot((mm)s->part[1], high, (mm)w);
}

static inline FRAMED_HD vec_s16 word_sums_narrow(const struct word_sums *s, int shift)
{
    return (vec_s16)MM(packs_epi32)((mm)(s->part[0] >> shift), (mm)(s->part[1] >> shift));
}

// --- columns: where a block's sums go

// A block's two registers hold its samples in the order of unpacked bytes, or in memory order for
// `words`.
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

#if defined(__AVX512VBMI__)

struct column_split {
    alignas(64) uint16_t order[2 * LANES];
};

// `sample`: the block's sample for each lane of its four quarters.
static inline void column_split_init(struct column_split *s, const uint8_t sample[2 * LANES],
                                     bool words, bool triples)
{
    (void)triples;
    for (int i = 0; i < 2 * LANES; i++) {
        const int n = sample[i];
        s->order[i] = (uint16_t)(words ? n : n % 16 / 8 * LANES + n / 16 * 8 + n % 8);
    }
}

static inline FRAMED_HD void columns_split(int16_t *const to[4], const struct column_split *s,
                                           const vec_s16 v[2], bool words)
{
    (void)words;
    for (int i = 0; i < 2; i++) {
        const mm order = (mm)load_u8(s->order + i * LANES);
        halves_store((uint8_t *)to[2 * i], (uint8_t *)to[2 * i + 1],
                     (vec_u8)_mm512_permutex2var_epi16((mm)v[0], order, (mm)v[1]));
    }
}

#else

// Shuffles within quarters of both registers, then among groups of four samples.
struct column_split {
    alignas(32) uint8_t bytes[2][2][VECTOR_BYTES]; // [result][register]
    alignas(32) int32_t fours[2][VECTOR_BYTES / 4];
};

static inline void column_split_init(struct column_split *s, const uint8_t sample[2 * LANES],
                                     bool words, bool triples)
{
    (void)words;
    memset(s->bytes, 0x80, sizeof s->bytes);
    for (int i = 0; i < 2; i++) {
        int used[2] = {0, 0}; // groups of four in either half
        for (int four = 0; four < LANES / 4; four++) {
            const uint8_t *from = sample + i * LANES + four * 4;
            const int half = triples ? from[0] >= 12 : from[0] >= 16;
            const int place = half * 2 + used[half]++;
            for (int k = 0; k < 4; k++) {
                const int n = triples && half ? from[k] - 8 : from[k] % 16;
                for (int byte = 0; byte < 2; byte++)
                    s->bytes[i][n / 8][place * 8 + k * 2 + byte] = (uint8_t)(n % 8 * 2 + byte);
            }
            s->fours[i][2 * four] = 2 * place;
            s->fours[i][2 * four + 1] = 2 * place + 1;
        }
    }
}

static inline FRAMED_HD void columns_split(int16_t *const to[4], const struct column_split *s,
                                           const vec_s16 v[2], bool words)
{
    const mm a = words ? _mm256_permute2x128_si256((mm)v[0], (mm)v[1], 0x20) : (mm)v[0];
    const mm b = words ? _mm256_permute2x128_si256((mm)v[0], (mm)v[1], 0x31) : (mm)v[1];
    for (int i = 0; i < 2; i++) {
        const mm both = _mm256_or_si256(_mm256_shuffle_epi8(a, (mm)load_u8(s->bytes[i][0])),
                                        _mm256_shuffle_epi8(b, (mm)load_u8(s->bytes[i][1])));
        const mm order = (mm)load_u8(s->fours[i]);
        halves_store((uint8_t *)to[2 * i], (uint8_t *)to[2 * i + 1],
                     (vec_u8)_mm256_permutevar8x32_epi32(both, order));
    }
}

#endif

// --- rows: sums start with the rounding term and the offset that centres them

#define ROW_START (WEIGHT_ONE / 2 - 128 * 128 * WEIGHT_ONE)

// Eight output pixels at a time, the even ones in the lower half of a register.

enum { DOTS = 8 };

static inline FRAMED_HD __m256i both_load(const int16_t *even, const int16_t *odd)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)even)),
                                   _mm_loadu_si128((const void *)odd), 1);
}

// Stores eight sums in the order of hadd.
static inline FRAMED_HD void dots_store(int16_t *to, __m256i sums)
{
    const __m256i rounded =
        _mm256_srai_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32(ROW_START)), WEIGHT_BITS);
    const __m128i odd = _mm_slli_epi32(_mm256_extracti128_si256(rounded, 1), 16);
    const __m128i even = _mm256_castsi256_si128(rounded);
    _mm_storeu_si128((void *)to, _mm_blend_epi16(even, odd, 0xaa));
}

// Weights of two adjacent pixels.
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

// --- rows: the sums for some output pixels are looked up in registers, two at a time

#define WINDOWS
enum { WINDOW_PAIRS = 4, WINDOW_STRIP = 1024 };

// {pixels, bytes}: so many pixels read within a window of so many bytes. The FLOATS pixels made at
// a time have two windows, or the same one twice.
enum { WINDOW_WAYS = 2 };
#if defined(__AVX512VBMI__)
static const struct reach window_ways[WINDOW_WAYS] = {{FLOATS, 64}, {FLOATS, 128}};
#else
static const struct reach window_ways[WINDOW_WAYS] = {{FLOATS, 32}, {FLOATS / 2, 32}};
#endif

struct windows {
    int way, pairs;
    int32_t base[WINDOW_STRIP / FLOATS][2];  // first sums of both windows; even
    alignas(64) int32_t index[WINDOW_STRIP]; // of a pixel's first pair in its window
    alignas(64) int32_t weights[WINDOW_PAIRS][WINDOW_STRIP]; // of pairs
};

static inline bool windows_place(struct windows *w, const int32_t *at,
                                 const struct filter_span *spans, int n, struct reach reach)
{
    for (int i = 0; i < (n + LANES - 1) / LANES * LANES; i += reach.lanes) {
        int lo = INT32_MAX, end = 0;
        for (int k = i; k < i + reach.lanes; k++) {
            const int pixel_end = at[k] + spans[k < n ? k : n - 1].count;
            lo = (at[k] & ~1) < lo ? at[k] & ~1 : lo;
            end = pixel_end > end ? pixel_end : end;
        }
        if ((end - lo) * 2 > reach.bytes)
            return false;
        for (int half = 0; half < 2; half++)
            if (reach.lanes == FLOATS || half == i % FLOATS / reach.lanes)
                w->base[i / FLOATS][half] = lo;
        for (int k = i; k < i + reach.lanes; k++)
            w->index[k] = (at[k] - lo) / 2;
    }
    return true;
}

// Returns false if windows are too small or pixels read too many sums. Pixel i reads the sums from
// at[i] on; `at` is padded with copies of the last one to whole PIXELS.
static inline bool windows_init(struct windows *w, const int32_t *at,
                                const struct filter_span *spans, const int16_t *weights, int stride,
                                int n)
{
    if (n > WINDOW_STRIP)
        return false;
    w->pairs = 0;
    for (int i = 0; i < n; i++) {
        const int pairs = ((at[i] & 1) + spans[i].count + 1) / 2;
        w->pairs = pairs > w->pairs ? pairs : w->pairs;
    }
    if (w->pairs > WINDOW_PAIRS)
        return false;
    for (w->way = 0; w->way < WINDOW_WAYS; w->way++)
        if (windows_place(w, at, spans, n, window_ways[w->way]))
            break;
    memset(w->weights, 0, sizeof w->weights);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < spans[i].count; k++) {
            const int place = (at[i] & 1) + k;
            memcpy((int16_t *)&w->weights[place / 2][i] + place % 2,
                   weights + (ptrdiff_t)i * stride + k, sizeof(int16_t));
        }
    return w->way < WINDOW_WAYS;
}

static inline FRAMED_HD mm window_pairs(const mm window[2], mm index, int way)
{
#if defined(__AVX512VBMI__)
    return way == 0 ? _mm512_permutexvar_epi32(index, window[0])
                    : _mm512_permutex2var_epi32(window[0], index, window[1]);
#else
    const mm first = _mm256_permutevar8x32_epi32(window[0], index);
    return way == 0
               ? first
               : _mm256_blend_epi32(first, _mm256_permutevar8x32_epi32(window[1], index), 0xf0);
#endif
}

// FLOATS pixels of `count` components, from i on.
static inline FRAMED_HD void window_sums(mm sum[], const int16_t *const row[], int count,
                                         const struct windows *w, int i, int pairs, int way)
{
    mm window[3][2];
    for (int c = 0; c < count; c++) {
        const int16_t *second = row[c] + w->base[i / FLOATS][1];
        window[c][0] = (mm)load_u8(row[c] + w->base[i / FLOATS][0]);
        window[c][1] =
            (mm)load_u8(second + (way == 1 && window_ways[1].lanes == FLOATS ? LANES : 0));
        sum[c] = (mm)all_s32(ROW_START);
    }
    vec_s32 index = (vec_s32)load_u8(w->index + i);
    for (int j = 0; j < pairs; j++, index += 1)
        for (int c = 0; c < count; c++)
            sum[c] = dot(sum[c], window_pairs(window[c], (mm)index, way),
                         (mm)load_u8(&w->weights[j][i]));
}

static inline FRAMED_HD void windows_make_of(int16_t *const to[], const int16_t *const row[],
                                             int count, const struct windows *w, int n, int pairs,
                                             int way)
{
    for (int i = 0; i < n; i += LANES) {
        mm low[3], high[3];
        window_sums(low, row, count, w, i, pairs, way);
        window_sums(high, row, count, w, i + FLOATS, pairs, way);
        for (int c = 0; c < count; c++) {
            const mm a = (mm)((vec_s32)low[c] >> WEIGHT_BITS);
            const mm b = (mm)((vec_s32)high[c] >> WEIGHT_BITS);
            store_u8(to[c] + i, (vec_u8)order_packed2(MM(packs_epi32)(a, b)));
        }
    }
}

// `count`, a constant: components with the same layout of sums.
static inline FRAMED_HD void windows_make(int16_t *const to[], const int16_t *const row[],
                                          int count, const struct windows *w, int n)
{
    switch (w->way * WINDOW_PAIRS + w->pairs) {
#define CASE(pairs)                                                                                \
    case pairs:                                                                                    \
        windows_make_of(to, row, count, w, n, pairs, 0);                                           \
        break;                                                                                     \
    case WINDOW_PAIRS + pairs:                                                                     \
        windows_make_of(to, row, count, w, n, pairs, 1);                                           \
        break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
#undef CASE
    }
}

#endif
