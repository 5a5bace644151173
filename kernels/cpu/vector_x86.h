// Operations of AVX2 and AVX-512 beyond vector.h. Most of their instructions work on each 128 bits
// of a vector separately (a quarter of an AVX-512 vector).
#ifndef FRAMED_KERNELS_CPU_VECTOR_X86_H
#define FRAMED_KERNELS_CPU_VECTOR_X86_H

#if defined(__AVX512VBMI__)
#include "kernels/cpu/vector_avx512.h"
#else
#include "kernels/cpu/vector_avx2.h"
#endif

static inline FRAMED_HD vec_s16 adds_s16(vec_s16 a, vec_s16 b)
{
    return (vec_s16)MM(adds_epi16)((mm)a, (mm)b);
}

static inline FRAMED_HD vec_s16 mulhrs_s16(vec_s16 a, vec_s16 b)
{
    return (vec_s16)MM(mulhrs_epi16)((mm)a, (mm)b);
}

static inline FRAMED_HD vec_s16 mulhi_s16(vec_s16 a, vec_s16 b)
{
    return (vec_s16)MM(mulhi_epi16)((mm)a, (mm)b);
}

static inline FRAMED_HD vec_u16 mulhi_u16(vec_u16 a, vec_u16 b)
{
    return (vec_u16)MM(mulhi_epu16)((mm)a, (mm)b);
}

static inline FRAMED_HD vec_s16 max_s16(vec_s16 a, vec_s16 b)
{
    return (vec_s16)MM(max_epi16)((mm)a, (mm)b);
}

static inline FRAMED_HD vec_s16 min_s16(vec_s16 a, vec_s16 b)
{
    return (vec_s16)MM(min_epi16)((mm)a, (mm)b);
}

static inline FRAMED_HD vec_f32 fma_f32(vec_f32 a, vec_f32 b, vec_f32 c)
{
    return (vec_f32)MM(fmadd_ps)(a, b, c);
}

static inline FRAMED_HD vec_f32 max_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)MM(max_ps)(a, b);
}

static inline FRAMED_HD vec_f32 min_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)MM(min_ps)(a, b);
}

// Adds the products of each lane's two pairs of 16 bits.
static inline FRAMED_HD vec_s32 dot_pairs(vec_s32 sum, vec_s16 a, vec_s16 b)
{
    return (vec_s32)dot((mm)sum, (mm)a, (mm)b);
}

static inline FRAMED_HD vec_u8 max_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)MM(max_epu8)((mm)a, (mm)b);
}

static inline FRAMED_HD vec_u8 min_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)MM(min_epu8)((mm)a, (mm)b);
}

static inline FRAMED_HD vec_s16 abs_s16(vec_s16 a)
{
    return (vec_s16)MM(abs_epi16)((mm)a);
}

static inline FRAMED_HD vec_s16 weigh_bytes(vec_u8 pairs, int low, int high)
{
    const vec_s16 weights = all_s16((low & 255) | (high & 255) << 8);
    return (vec_s16)MM(maddubs_epi16)((mm)pairs, (mm)weights);
}

static inline FRAMED_HD vec_s16 weigh_pairs(vec_s16 pairs, vec_s16 weights)
{
    return (vec_s16)MM(maddubs_epi16)((mm)weights, (mm)((vec_u8)pairs ^ 128));
}

static inline FRAMED_HD vec_s16 step7_pairs(vec_s16 pairs)
{
    return (vec_s16)MM(maddubs_epi16)((mm)pairs, (mm)all_s16(0x40c0)) << 1;
}

static inline FRAMED_HD vec_u8 pack_u8(vec_s16 low, vec_s16 high)
{
    return (vec_u8)order_packed2(MM(packus_epi16)((mm)low, (mm)high));
}

static inline FRAMED_HD vec_u8 pack_level6(vec_s16 low, vec_s16 high)
{
    return pack_u8(low >> 6, high >> 6);
}

static inline FRAMED_HD vec_u8 pack_quarters(vec_s16 low, vec_s16 high)
{
    const vec_s16 quarter = all_s16(1 << 13);
    return pack_u8(mulhrs_s16(low, quarter), mulhrs_s16(high, quarter));
}

static inline FRAMED_HD void store_zipped(int16_t *at, vec_s16 even, vec_s16 odd)
{
    const mm a = order_unpacked2((mm)even), b = order_unpacked2((mm)odd);
    store_u8(at, (vec_u8)MM(unpacklo_epi16)(a, b));
    store_u8(at + LANES, (vec_u8)MM(unpackhi_epi16)(a, b));
}

#endif
