// AVX2 operations (with FMA and F16C) that differ from AVX-512's: see vector_x86.h.
#ifndef FRAMED_KERNELS_CPU_VECTOR_AVX2_H
#define FRAMED_KERNELS_CPU_VECTOR_AVX2_H

#include <immintrin.h>

#include "kernels/cpu/vector.h"

typedef __m256i mm;
#define MM(operation) _mm256_##operation

// Repeats v in both 128-bit halves, which are loaded, shuffled and packed separately.
static inline FRAMED_HD mm each_quarter(__m128i v)
{
    return _mm256_broadcastsi128_si256(v);
}

static inline FRAMED_HD mm quarters_load(const void *low, const void *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                   _mm_loadu_si128(high), 1);
}

// order_packed: from the order after packing two vectors, or four, to memory order. order_unpacked:
// to the order whose unpacking gives memory order.
static inline FRAMED_HD mm order_packed2(mm v)
{
    return _mm256_permute4x64_epi64(v, 0xd8);
}

static inline FRAMED_HD mm order_unpacked2(mm v)
{
    return order_packed2(v); // its own inverse
}

static inline FRAMED_HD mm order_packed4(mm v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static inline FRAMED_HD mm order_unpacked4(mm v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

// --- halves

static inline FRAMED_HD vec_u8 halves_load(const uint8_t *low, const uint8_t *high)
{
    return (vec_u8)quarters_load(low, high);
}

static inline FRAMED_HD void halves_store(uint8_t *low, uint8_t *high, vec_u8 v)
{
    _mm_storeu_si128((void *)low, _mm256_castsi256_si128((mm)v));
    _mm_storeu_si128((void *)high, _mm256_extracti128_si256((mm)v, 1));
}

static inline FRAMED_HD vec_u8 halves_zip(vec_u8 v)
{
    const mm order =
        each_quarter(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    return (vec_u8)_mm256_shuffle_epi8(order_packed2((mm)v), order);
}

static inline FRAMED_HD vec_u8 halves_split(vec_u8 v)
{
    const mm order =
        each_quarter(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    return (vec_u8)order_packed2(_mm256_shuffle_epi8((mm)v, order));
}

// --- triples

// Moves byte i of plane `turn` to place 3 * i + turn, modulo 16, within each quarter: its place in
// one of three vectors.
static inline FRAMED_HD mm triple_places(vec_u8 v, int turn)
{
#define PLACE(p)  (char)(11 * (16 + (p)-turn) % 16) // 3 * 11 is 1, modulo 16
#define PLACE4(p) PLACE(p), PLACE((p) + 1), PLACE((p) + 2), PLACE((p) + 3)
    const __m128i order = _mm_setr_epi8(PLACE4(0), PLACE4(4), PLACE4(8), PLACE4(12));
#undef PLACE4
#undef PLACE
    return _mm256_shuffle_epi8((mm)v, each_quarter(order));
}

// Mask of the places p of vector i that belong to plane `turn`.
static inline FRAMED_HD mm triple_turn(int i, int turn)
{
#define TURN(p)  ((16 * i + (p)) % 3 == turn ? -1 : 0)
#define TURN4(p) TURN(p), TURN((p) + 1), TURN((p) + 2), TURN((p) + 3)
    return each_quarter(_mm_setr_epi8(TURN4(0), TURN4(4), TURN4(8), TURN4(12)));
#undef TURN4
#undef TURN
}

static inline FRAMED_HD void store_triples(uint8_t *to, vec_u8 a, vec_u8 b, vec_u8 c)
{
    const mm v[3] = {triple_places(a, 0), triple_places(b, 1), triple_places(c, 2)};
    mm out[3]; // 48 bytes per quarter
    for (int i = 0; i < 3; i++)
        out[i] = _mm256_blendv_epi8(_mm256_blendv_epi8(v[0], v[1], triple_turn(i, 1)), v[2],
                                    triple_turn(i, 2));
    store_u8(to, (vec_u8)_mm256_permute2x128_si256(out[0], out[1], 0x20));
    store_u8(to + 32, (vec_u8)_mm256_blend_epi32(out[2], out[0], 0xf0));
    store_u8(to + 64, (vec_u8)_mm256_permute2x128_si256(out[1], out[2], 0x31));
}

// Widens 8 pixels of 3 bytes to 4 bytes, the last of which is 0. The second quarter is loaded 4
// bytes early, so that it ends with its 12 bytes.
enum { TRIPLES_BYTES = 24 };

static inline FRAMED_HD mm triples_widened(const uint8_t *at)
{
    const mm order = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, //
                                      4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
    return _mm256_shuffle_epi8(quarters_load(at, at + 8), order);
}

// Stores the first 3 bytes of 8 pixels of 4 bytes to three planes.
static inline FRAMED_HD void words_part(uint8_t *first, uint8_t *second, uint8_t *third, mm v)
{
    const mm order =
        each_quarter(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const mm planes = order_packed4(_mm256_shuffle_epi8(v, order));
    const __m128i low = _mm256_castsi256_si128(planes);
    _mm_storel_epi64((void *)first, low);
    _mm_storel_epi64((void *)second, _mm_unpackhi_epi64(low, low));
    _mm_storel_epi64((void *)third, _mm256_extracti128_si256(planes, 1));
}

// --- colour tables: see lut_lanes.h

static inline FRAMED_HD mm quarters_join(const __m128i quarter[2])
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(quarter[0]), quarter[1], 1);
}

// A weight's high 8 bits in the high byte, and its low 7 bits in the low one.
static inline FRAMED_HD vec_u16 weight_bytes(vec_u16 w)
{
    return w + (w & 0xff80);
}

// Sums of these bytes times nodes, which are centred on 0.
static inline FRAMED_HD mm lut_sums(mm near_high, mm near_low, mm far_high, mm far_low, mm near,
                                    mm far)
{
    const mm high = _mm256_add_epi16(_mm256_maddubs_epi16(near_high, near),
                                     _mm256_maddubs_epi16(far_high, far));
    const mm one = _mm256_set1_epi16(1);
    mm sum = _mm256_set1_epi32(128 * WEIGHT_ONE + WEIGHT_ONE / 2);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(high, _mm256_set1_epi16(128)));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(near_low, near), one));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(far_low, far), one));
    return _mm256_srli_epi32(sum, WEIGHT_BITS);
}

// --- sums of products

static inline FRAMED_HD mm dot(mm sum, mm a, mm b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

// The upper halves of 32-bit lanes, a's and b's alternating.
static inline FRAMED_HD mm uppers_zip(mm a, mm b)
{
    return _mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xaa);
}

// The upper halves of the 32-bit lanes of four vectors, saturated to bytes.
static inline FRAMED_HD vec_u8 uppers_pack(const mm v[4])
{
    const mm order =
        each_quarter(_mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
    const mm packed = _mm256_packus_epi16(uppers_zip(v[0], v[1]), uppers_zip(v[2], v[3]));
    return (vec_u8)order_packed4(_mm256_shuffle_epi8(packed, order));
}

// The same if all of them are bytes.
static inline FRAMED_HD vec_u8 uppers_pack_bytes(const mm v[4])
{
    return uppers_pack(v);
}

// The same for three times four vectors, alternating: 12 bytes from each quarter. A store of 32
// bytes writes 8 too many, which the next one overwrites; the last ones are exact.
static inline FRAMED_HD void store_upper_triples(uint8_t *to, const mm a[4], const mm b[4],
                                                 const mm c[4])
{
    const mm turns =
        each_quarter(_mm_setr_epi8(0, 1, 9, 2, 3, 11, 4, 5, 13, 6, 7, 15, -1, -1, -1, -1));
    const mm join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    mm triples[4];
    for (int i = 0; i < 4; i++) {
        const mm packed = _mm256_packus_epi16(uppers_zip(a[i], b[i]), c[i]);
        triples[i] = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(packed, turns), join);
    }
    for (int i = 0; i < 3; i++)
        store_u8(to + i * 24, (vec_u8)triples[i]);
    _mm_storeu_si128((void *)(to + 72), _mm256_castsi256_si128(triples[3]));
    _mm_storel_epi64((void *)(to + 88), _mm256_extracti128_si256(triples[3], 1));
}

// --- gather

enum { REACHES = 3 };

static const struct reach reaches[REACHES] = {{8, 16}, {4, 16}, {8, 64}};

// A shuffle gives 0 for an index of 128 or more.
static inline FRAMED_HD vec_s16 gather_pairs(int reach, const uint8_t *row, const int32_t *base,
                                             vec_s16 pairs)
{
    const uint8_t *low = row + base[0], *high = row + base[2];
    const mm index = (mm)pairs;
    if (reach == 0)
        return (vec_s16)_mm256_shuffle_epi8(quarters_load(low, high), index);
    if (reach == 1) {
        const mm even = _mm256_shuffle_epi8(quarters_load(low, high), index);
        const mm odd = _mm256_shuffle_epi8(quarters_load(row + base[1], row + base[3]), index);
        return (vec_s16)_mm256_blend_epi32(even, odd, 0xcc);
    }
    mm found = _mm256_setzero_si256();
    for (int at = 0; at < reaches[reach].bytes; at += 16) {
        const mm here = _mm256_sub_epi8(index, _mm256_set1_epi8((char)at));
        const mm inside = _mm256_adds_epu8(here, _mm256_set1_epi8(0x70));
        const mm window = quarters_load(low + at, high + at);
        found = _mm256_or_si256(found, _mm256_shuffle_epi8(window, inside));
    }
    return (vec_s16)found;
}

// --- floats

static inline FRAMED_HD vec_s32 words_widened(const uint16_t *at)
{
    return (vec_s32)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)at));
}

static inline FRAMED_HD vec_s32 levels_widened(const uint8_t *at)
{
    return (vec_s32)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)at));
}

static inline FRAMED_HD vec_s32 select_s32(vec_s32 mask, vec_s32 a, vec_s32 b)
{
    return (vec_s32)_mm256_blendv_epi8((mm)b, (mm)a, (mm)mask);
}

static inline FRAMED_HD unsigned lanes_bits(vec_s32 mask)
{
    return (unsigned)_mm256_movemask_ps((__m256)mask);
}

static inline FRAMED_HD vec_f32 load_half(const uint16_t *at)
{
    return (vec_f32)_mm256_cvtph_ps(_mm_loadu_si128((const void *)at));
}

static inline FRAMED_HD void store_half(uint16_t *to, vec_f32 a)
{
    _mm_storeu_si128((void *)to, _mm256_cvtps_ph((__m256)a, _MM_FROUND_TO_NEAREST_INT));
}

#endif
