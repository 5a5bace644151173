// Operations of NEON, which every arm64 CPU has, beyond vector.h.
#ifndef FRAMED_KERNELS_CPU_VECTOR_NEON_H
#define FRAMED_KERNELS_CPU_VECTOR_NEON_H

#include <arm_neon.h>

#include "kernels/cpu/vector.h"

static inline FRAMED_HD vec_s16 adds_s16(vec_s16 a, vec_s16 b)
{
    return (vec_s16)vqaddq_s16((int16x8_t)a, (int16x8_t)b);
}

static inline FRAMED_HD vec_s16 mulhrs_s16(vec_s16 a, vec_s16 b)
{
    return (vec_s16)vqrdmulhq_s16((int16x8_t)a, (int16x8_t)b);
}

static inline FRAMED_HD vec_s16 mulhi_s16(vec_s16 a, vec_s16 b)
{
    const int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
    const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y));
    return (vec_s16)vuzp2q_s16((int16x8_t)low, (int16x8_t)vmull_high_s16(x, y));
}

static inline FRAMED_HD vec_u16 mulhi_u16(vec_u16 a, vec_u16 b)
{
    const uint16x8_t x = (uint16x8_t)a, y = (uint16x8_t)b;
    const uint32x4_t low = vmull_u16(vget_low_u16(x), vget_low_u16(y));
    return (vec_u16)vuzp2q_u16((uint16x8_t)low, (uint16x8_t)vmull_high_u16(x, y));
}

static inline FRAMED_HD vec_s16 max_s16(vec_s16 a, vec_s16 b)
{
    return (vec_s16)vmaxq_s16((int16x8_t)a, (int16x8_t)b);
}

static inline FRAMED_HD vec_s16 min_s16(vec_s16 a, vec_s16 b)
{
    return (vec_s16)vminq_s16((int16x8_t)a, (int16x8_t)b);
}

static inline FRAMED_HD vec_f32 fma_f32(vec_f32 a, vec_f32 b, vec_f32 c)
{
    return (vec_f32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}

static inline FRAMED_HD vec_s32 dot_pairs(vec_s32 sum, vec_s16 a, vec_s16 b)
{
    const int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)a), vget_low_s16((int16x8_t)b));
    const int32x4_t high = vmull_high_s16((int16x8_t)a, (int16x8_t)b);
    return sum + (vec_s32)vpaddq_s32(low, high);
}

static inline FRAMED_HD vec_u8 max_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)vmaxq_u8((uint8x16_t)a, (uint8x16_t)b);
}

static inline FRAMED_HD vec_u8 min_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)vminq_u8((uint8x16_t)a, (uint8x16_t)b);
}

static inline FRAMED_HD vec_s16 abs_s16(vec_s16 a)
{
    return (vec_s16)vabsq_s16((int16x8_t)a);
}

static inline FRAMED_HD vec_s16 weigh_bytes(vec_u8 pairs, int low, int high)
{
    return ((vec_s16)pairs & 255) * (int16_t)low + (vec_s16)((vec_u16)pairs >> 8) * (int16_t)high;
}

static inline FRAMED_HD vec_s16 weigh_pairs(vec_s16 pairs, vec_s16 weights)
{
    const uint8x16_t sample = (uint8x16_t)pairs, weight = (uint8x16_t)weights;
    const uint16x8_t low = vmull_u8(vget_low_u8(sample), vget_low_u8(weight));
    const uint16x8_t high = vmull_high_u8(sample, weight);
    return (vec_s16)vpaddq_u16(low, high) - 128 * 128;
}

static inline FRAMED_HD vec_s16 step7_pairs(vec_s16 pairs)
{
    return ((vec_s16)((vec_u16)pairs >> 8) - (pairs & 255)) << 7;
}

static inline FRAMED_HD vec_u8 pack_u8(vec_s16 low, vec_s16 high)
{
    return (vec_u8)vqmovun_high_s16(vqmovun_s16((int16x8_t)low), (int16x8_t)high);
}

static inline FRAMED_HD vec_u8 pack_level6(vec_s16 low, vec_s16 high)
{
    return (vec_u8)vqshrun_high_n_s16(vqshrun_n_s16((int16x8_t)low, 6), (int16x8_t)high, 6);
}

static inline FRAMED_HD vec_u8 pack_quarters(vec_s16 low, vec_s16 high)
{
    return (vec_u8)vqrshrun_high_n_s16(vqrshrun_n_s16((int16x8_t)low, 2), (int16x8_t)high, 2);
}

static inline FRAMED_HD void store_zipped(int16_t *at, vec_s16 even, vec_s16 odd)
{
    const int16x8x2_t both = {{(int16x8_t)even, (int16x8_t)odd}};
    vst2q_s16(at, both);
}

// --- halves

static inline FRAMED_HD vec_u8 halves_load(const uint8_t *low, const uint8_t *high)
{
    return (vec_u8)vcombine_u8(vld1_u8(low), vld1_u8(high));
}

static inline FRAMED_HD void halves_store(uint8_t *low, uint8_t *high, vec_u8 v)
{
    vst1_u8(low, vget_low_u8((uint8x16_t)v));
    vst1_u8(high, vget_high_u8((uint8x16_t)v));
}

static inline FRAMED_HD vec_u8 halves_zip(vec_u8 v)
{
    const uint8x16_t a = (uint8x16_t)v, b = vextq_u8(a, a, 8);
    return (vec_u8)vzip1q_u8(a, b);
}

static inline FRAMED_HD vec_u8 halves_split(vec_u8 v)
{
    const uint8x8x2_t both = vuzp_u8(vget_low_u8((uint8x16_t)v), vget_high_u8((uint8x16_t)v));
    return (vec_u8)vcombine_u8(both.val[0], both.val[1]);
}

static inline FRAMED_HD void store_triples(uint8_t *to, vec_u8 a, vec_u8 b, vec_u8 c)
{
    const uint8x16x3_t all = {{(uint8x16_t)a, (uint8x16_t)b, (uint8x16_t)c}};
    vst3q_u8(to, all);
}

// --- gather

enum { REACHES = 4 };

static const struct reach reaches[REACHES] = {{8, 16}, {8, 32}, {8, 64}, {8, 128}};

static inline FRAMED_HD vec_s16 gather_pairs(int reach, const uint8_t *row, const int32_t *base,
                                             vec_s16 pairs)
{
    const uint8_t *at = row + base[0];
    const uint8x16_t index = (uint8x16_t)pairs;
    uint8x16_t found;
    if (reach == 0)
        found = vqtbl1q_u8(vld1q_u8(at), index);
    else if (reach == 1)
        found = vqtbl2q_u8(vld1q_u8_x2(at), index);
    else
        found = vqtbl4q_u8(vld1q_u8_x4(at), index);
    if (reach == 3) // indices beyond the first 64 bytes gave 0
        found = vqtbx4q_u8(found, vld1q_u8_x4(at + 64), vsubq_u8(index, vdupq_n_u8(64)));
    return (vec_s16)found;
}

// --- floats

static inline FRAMED_HD vec_s32 words_widened(const uint16_t *at)
{
    return (vec_s32)vmovl_u16(vld1_u16(at));
}

static inline FRAMED_HD vec_s32 levels_widened(const uint8_t *at)
{
    uint32_t levels;
    memcpy(&levels, at, sizeof(levels));
    const uint16x8_t wide = vmovl_u8(vcreate_u8(levels));
    return (vec_s32)vmovl_u16(vget_low_u16(wide));
}

static inline FRAMED_HD vec_f32 max_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)vbslq_f32((uint32x4_t)(a > b), (float32x4_t)a, (float32x4_t)b);
}

static inline FRAMED_HD vec_f32 min_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)vbslq_f32((uint32x4_t)(a < b), (float32x4_t)a, (float32x4_t)b);
}

static inline FRAMED_HD vec_s32 select_s32(vec_s32 mask, vec_s32 a, vec_s32 b)
{
    return (vec_s32)vbslq_s32((uint32x4_t)mask, (int32x4_t)a, (int32x4_t)b);
}

static inline FRAMED_HD unsigned lanes_bits(vec_s32 mask)
{
    const vec_u32 bit = {1, 2, 4, 8};
    return vaddvq_u32((uint32x4_t)((vec_u32)mask & bit));
}

static inline FRAMED_HD vec_f32 load_half(const uint16_t *at)
{
    return (vec_f32)vcvt_f32_f16((float16x4_t)vld1_u16(at));
}

static inline FRAMED_HD void store_half(uint16_t *to, vec_f32 a)
{
    vst1_u16(to, (uint16x4_t)vcvt_f16_f32((float32x4_t)a));
}

#endif
