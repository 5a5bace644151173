// AVX-512 operations (F, BW, VL, DQ, VBMI, VNNI, VPOPCNTDQ) that differ from AVX2's: vector_x86.h.
#ifndef FRAMED_KERNELS_CPU_VECTOR_AVX512_H
#define FRAMED_KERNELS_CPU_VECTOR_AVX512_H

#include <immintrin.h>

#include "kernels/cpu/vector.h"

typedef __m512i mm;
#define MM(operation) _mm512_##operation

// Orders of 64 bytes: X(i) is the source of byte i.
#define ORDER4(X, i)  X(i), X((i) + 1), X((i) + 2), X((i) + 3)
#define ORDER16(X, i) ORDER4(X, i), ORDER4(X, (i) + 4), ORDER4(X, (i) + 8), ORDER4(X, (i) + 12)
#define ORDER(X)                                                                                   \
    {                                                                                              \
        ORDER16(X, 0), ORDER16(X, 16), ORDER16(X, 32), ORDER16(X, 48)                              \
    }

typedef uint8_t byte_order[64] __attribute__((aligned(64)));

static inline FRAMED_HD mm order_load(const byte_order order)
{
    return _mm512_load_si512(order);
}

static inline FRAMED_HD mm each_quarter(__m128i v)
{
    return _mm512_broadcast_i32x4(v);
}

// order_packed: from the order after packing two vectors, or four, to memory order. order_unpacked:
// to the order whose unpacking gives memory order.
static inline FRAMED_HD mm order_packed2(mm v)
{
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), v);
}

static inline FRAMED_HD mm order_unpacked2(mm v)
{
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), v);
}

static inline FRAMED_HD mm order_packed4(mm v)
{
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v);
}

static inline FRAMED_HD mm order_unpacked4(mm v)
{
    return order_packed4(v); // its own inverse
}

// --- halves

static inline FRAMED_HD vec_u8 halves_load(const uint8_t *low, const uint8_t *high)
{
    return (vec_u8)_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const void *)low)),
                                      _mm256_loadu_si256((const void *)high), 1);
}

static inline FRAMED_HD void halves_store(uint8_t *low, uint8_t *high, vec_u8 v)
{
    _mm256_storeu_si256((void *)low, _mm512_castsi512_si256((mm)v));
    _mm256_storeu_si256((void *)high, _mm512_extracti64x4_epi64((mm)v, 1));
}

#define ZIPPED(i) ((i) / 2 + (i) % 2 * 32)
#define SPLIT(i)  ((i) % 32 * 2 + (i) / 32)
static const byte_order zipped = ORDER(ZIPPED), split = ORDER(SPLIT);

static inline FRAMED_HD vec_u8 halves_zip(vec_u8 v)
{
    return (vec_u8)_mm512_permutexvar_epi8(order_load(zipped), (mm)v);
}

static inline FRAMED_HD vec_u8 halves_split(vec_u8 v)
{
    return (vec_u8)_mm512_permutexvar_epi8(order_load(split), (mm)v);
}

// --- triples

// Byte i of plane c belongs at place 3 * i + c, modulo 64, of one of three vectors.
#define PLACE0(p) (uint8_t)(43 * (p) % 64) // 3 * 43 is 1, modulo 64
#define PLACE1(p) PLACE0((p) + 63)
#define PLACE2(p) PLACE0((p) + 62)
static const byte_order triple_places[3] = {ORDER(PLACE0), ORDER(PLACE1), ORDER(PLACE2)};

static inline FRAMED_HD void store_triples(uint8_t *to, vec_u8 a, vec_u8 b, vec_u8 c)
{
    // masks of the places p of vector i with 64 * i + p equal to 1, or 2, modulo 3
    static const uint64_t of_b[3] = {0x2492492492492492, 0x9249249249249249, 0x4924924924924924};
    static const uint64_t of_c[3] = {0x4924924924924924, 0x2492492492492492, 0x9249249249249249};
    const mm v[3] = {_mm512_permutexvar_epi8(order_load(triple_places[0]), (mm)a),
                     _mm512_permutexvar_epi8(order_load(triple_places[1]), (mm)b),
                     _mm512_permutexvar_epi8(order_load(triple_places[2]), (mm)c)};
    for (int i = 0; i < 3; i++) {
        const mm ab = _mm512_mask_blend_epi8(of_b[i], v[0], v[1]);
        store_u8(to + 64 * i, (vec_u8)_mm512_mask_blend_epi8(of_c[i], ab, v[2]));
    }
}

// Widens 16 pixels of 3 bytes to 4 bytes, the last of which is arbitrary.
enum { TRIPLES_BYTES = 48 };

#define WIDENED(i) ((i) / 4 * 3 + (i) % 4)
static const byte_order widened = ORDER(WIDENED);

static inline FRAMED_HD mm triples_widened(const uint8_t *at)
{
    return _mm512_permutexvar_epi8(order_load(widened), _mm512_maskz_loadu_epi32(0x0fff, at));
}

// Stores the first 3 bytes of 16 pixels of 4 bytes to three planes.
#define PARTED(i) ((i) % 16 * 4 + (i) / 16)
static const byte_order parted = ORDER(PARTED);

static inline FRAMED_HD void words_part(uint8_t *first, uint8_t *second, uint8_t *third, mm v)
{
    const mm planes = _mm512_permutexvar_epi8(order_load(parted), v);
    _mm_storeu_si128((void *)first, _mm512_castsi512_si128(planes));
    _mm_storeu_si128((void *)second, _mm512_extracti32x4_epi32(planes, 1));
    _mm_storeu_si128((void *)third, _mm512_extracti32x4_epi32(planes, 2));
}

// --- colour tables: see lut_lanes.h

static inline FRAMED_HD mm quarters_join(const __m128i quarter[4])
{
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(quarter[0]), quarter[1], 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(quarter[2]), quarter[3], 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// A weight's high 8 bits in the high byte, and its low 7 bits, doubled, in the low one.
static inline FRAMED_HD vec_u16 weight_bytes(vec_u16 w)
{
    return w << 1;
}

// Sums of these bytes times nodes, which are centred on 0.
static inline FRAMED_HD mm lut_sums(mm near_high, mm near_low, mm far_high, mm far_low, mm near,
                                    mm far)
{
    const mm round = _mm512_set1_epi32(2 * (128 * WEIGHT_ONE + WEIGHT_ONE / 2));
    const mm high = _mm512_dpbusd_epi32(
        _mm512_dpbusd_epi32(_mm512_setzero_si512(), near_high, near), far_high, far);
    const mm low = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(round, near_low, near), far_low, far);
    return _mm512_srli_epi32(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low), WEIGHT_BITS + 1);
}

// --- sums of products

static inline FRAMED_HD mm dot(mm sum, mm a, mm b)
{
    return _mm512_dpwssd_epi32(sum, a, b);
}

// The upper halves of 32-bit lanes, a's and b's alternating.
static inline FRAMED_HD mm uppers_zip(mm a, mm b)
{
    return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(a, 16), b);
}

// From two vectors: uppers: the upper half of each 32-bit lane; thirds: its third byte, repeated.
#define UPPER(i) ((i) / 2 % 16 * 2 + 1 + (i) / 32 * 32) * ((i) % 2 == 0)
#define THIRD(i) ((i) % 16 * 4 + 2 + (i) / 16 % 2 * 64)
static const byte_order uppers = ORDER(UPPER), thirds = ORDER(THIRD);

// The upper halves of the 32-bit lanes of four vectors, saturated to bytes.
static inline FRAMED_HD vec_u8 uppers_pack(const mm v[4])
{
    const mm low = _mm512_permutex2var_epi16(v[0], order_load(uppers), v[1]);
    const mm high = _mm512_permutex2var_epi16(v[2], order_load(uppers), v[3]);
    return (vec_u8)order_packed2(_mm512_packus_epi16(low, high));
}

// The same if all of them are bytes.
static inline FRAMED_HD vec_u8 uppers_pack_bytes(const mm v[4])
{
    const mm low = _mm512_permutex2var_epi8(v[0], order_load(thirds), v[1]);
    const mm high = _mm512_permutex2var_epi8(v[2], order_load(thirds), v[3]);
    return (vec_u8)_mm512_mask_blend_epi64(0xf0, low, high);
}

// Stores the levels of 64 pixels, alternating; the upper halves of `a` are bytes.
static inline FRAMED_HD void store_upper_triples(uint8_t *to, const mm a[4], const mm b[4],
                                                 const mm c[4])
{
    store_triples(to, uppers_pack_bytes(a), uppers_pack(b), uppers_pack(c));
}

// --- gather

enum { REACHES = 4 };

static const struct reach reaches[REACHES] = {{32, 64}, {32, 128}, {16, 128}, {8, 128}};

// Replaces the indices selected by `which` with their bytes.
static inline FRAMED_HD mm window_look_up(const uint8_t *at, mm index, __mmask64 which)
{
    return _mm512_mask2_permutex2var_epi8((mm)load_u8(at), index, which, (mm)load_u8(at + 64));
}

static inline FRAMED_HD vec_s16 gather_pairs(int reach, const uint8_t *row, const int32_t *base,
                                             vec_s16 pairs)
{
    mm index = (mm)pairs;
    if (reach == 0)
        return (vec_s16)_mm512_permutexvar_epi8(index, (mm)load_u8(row + base[0]));
    if (reach == 1)
        return (vec_s16)_mm512_permutex2var_epi8((mm)load_u8(row + base[0]), index,
                                                 (mm)load_u8(row + base[0] + 64));
    if (reach == 2) {
        index = window_look_up(row + base[0], index, 0xffffffff);
        return (vec_s16)window_look_up(row + base[4], index, 0xffffffff00000000);
    }
    index = window_look_up(row + base[0], index, 0xffff);
    index = window_look_up(row + base[2], index, 0xffff0000);
    index = window_look_up(row + base[4], index, 0xffff00000000);
    return (vec_s16)window_look_up(row + base[6], index, 0xffff000000000000);
}

// --- floats

static inline FRAMED_HD vec_s32 words_widened(const uint16_t *at)
{
    return (vec_s32)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)at));
}

static inline FRAMED_HD vec_s32 levels_widened(const uint8_t *at)
{
    return (vec_s32)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)at));
}

static inline FRAMED_HD vec_s32 select_s32(vec_s32 mask, vec_s32 a, vec_s32 b)
{
    return (vec_s32)_mm512_mask_blend_epi32(_mm512_movepi32_mask((mm)mask), (mm)b, (mm)a);
}

static inline FRAMED_HD unsigned lanes_bits(vec_s32 mask)
{
    return _mm512_movepi32_mask((__m512i)mask);
}

static inline FRAMED_HD vec_f32 load_half(const uint16_t *at)
{
    return (vec_f32)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)at));
}

static inline FRAMED_HD void store_half(uint16_t *to, vec_f32 a)
{
    _mm256_storeu_si256((void *)to, _mm512_cvtps_ph((__m512)a, _MM_FROUND_TO_NEAREST_INT));
}

#endif
