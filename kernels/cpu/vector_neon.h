// vec and flt in NEON, as every arm64 CPU has it.
#ifndef FRAMED_KERNELS_CPU_VECTOR_NEON_H
#define FRAMED_KERNELS_CPU_VECTOR_NEON_H

#include <arm_neon.h>
#include <string.h>

#include "kernels/fixed.h"

enum { LANES = 8, FLOATS = 4 };

typedef int16x8_t vec;
typedef float32x4_t flt;

static inline FRAMED_HD vec vec_load(const void *at)
{
    return vreinterpretq_s16_u8(vld1q_u8((const uint8_t *)at));
}

static inline FRAMED_HD void vec_store(void *at, vec a)
{
    vst1q_u8((uint8_t *)at, vreinterpretq_u8_s16(a));
}

static inline FRAMED_HD vec vec_all(int x)
{
    return vdupq_n_s16((int16_t)x);
}

static inline FRAMED_HD vec vec_and(vec a, vec b)
{
    return vandq_s16(a, b);
}

static inline FRAMED_HD vec vec_add(vec a, vec b)
{
    return vaddq_s16(a, b);
}

static inline FRAMED_HD vec vec_sub(vec a, vec b)
{
    return vsubq_s16(a, b);
}

static inline FRAMED_HD vec vec_adds(vec a, vec b)
{
    return vqaddq_s16(a, b);
}

static inline FRAMED_HD vec vec_mulhrs(vec a, vec b)
{
    return vqrdmulhq_s16(a, b);
}

// The compilers make one instruction of a shift by a constant in every lane.
static inline FRAMED_HD vec vec_shl(vec a, int bits)
{
    return vreinterpretq_s16_u16(vreinterpretq_u16_s16(a) << vdupq_n_u16((uint16_t)bits));
}

static inline FRAMED_HD vec vec_shr(vec a, int bits) // of unsigned lanes
{
    return vreinterpretq_s16_u16(vreinterpretq_u16_s16(a) >> vdupq_n_u16((uint16_t)bits));
}

static inline FRAMED_HD vec vec_sar(vec a, int bits)
{
    return a >> vec_all(bits);
}

// Of lanes that hold two samples, the left one in the low byte: both times the bytes of `weights`,
// which sum to 128: 7 fraction bits, centred on 128. And how much the right one is more.
static inline FRAMED_HD vec vec_between(vec pairs, vec weights)
{
    const uint8x16_t sample = vreinterpretq_u8_s16(pairs), weight = vreinterpretq_u8_s16(weights);
    const uint16x8_t low = vmull_u8(vget_low_u8(sample), vget_low_u8(weight));
    const uint16x8_t high = vmull_high_u8(sample, weight);
    return vec_sub(vreinterpretq_s16_u16(vpaddq_u16(low, high)), vec_all(128 * 128));
}

static inline FRAMED_HD vec vec_step7(vec pairs)
{
    return vec_shl(vec_sub(vec_shr(pairs, 8), vec_and(pairs, vec_all(255))), 7);
}

// The 2 * LANES levels of a, then b: level_of each lane.
static inline FRAMED_HD void vec_store_levels(uint8_t *to, vec a, vec b)
{
    vst1q_u8(to, vqshrun_high_n_s16(vqshrun_n_s16(a, 6), b, 6));
}

// How vec_gather finds bytes: a run of `lanes` lanes takes them from a window of `bytes` bytes.
struct reach {
    int lanes, bytes;
};

enum { REACHES = 4 };

static const struct reach reaches[REACHES] = {{8, 16}, {8, 32}, {8, 64}, {8, 128}};

// For each lane two bytes of `row`, chosen by the lane's bytes of `index`, which count from
// base[lane / 4]. `reach`: a constant.
static inline FRAMED_HD vec vec_gather(int reach, const uint8_t *row, const int32_t *base,
                                       vec index)
{
    const uint8_t *at = row + base[0];
    const uint8x16_t from = vreinterpretq_u8_s16(index);
    uint8x16_t found;
    if (reach == 0)
        found = vqtbl1q_u8(vld1q_u8(at), from);
    else if (reach == 1)
        found = vqtbl2q_u8(vld1q_u8_x2(at), from);
    else
        found = vqtbl4q_u8(vld1q_u8_x4(at), from);
    if (reach == 3) // what lies behind the first 64 bytes was found to be 0
        found = vqtbx4q_u8(found, vld1q_u8_x4(at + 64), vsubq_u8(from, vdupq_n_u8(64)));
    return vreinterpretq_s16_u8(found);
}

// 3 * 16 bytes: r, g and b of 16 pixels in turn.
static inline FRAMED_HD void bytes_interleave(uint8_t *to, const uint8_t *r, const uint8_t *g,
                                              const uint8_t *b)
{
    const uint8x16x3_t pixels = {{vld1q_u8(r), vld1q_u8(g), vld1q_u8(b)}};
    vst3q_u8(to, pixels);
}

static inline FRAMED_HD flt flt_load(const float *at)
{
    return vld1q_f32(at);
}

static inline FRAMED_HD flt flt_levels(const uint8_t *at)
{
    uint32_t levels;
    memcpy(&levels, at, sizeof(levels));
    const uint16x8_t wide = vmovl_u8(vcreate_u8(levels));
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide)));
}

static inline FRAMED_HD flt flt_add(flt a, flt b)
{
    return vaddq_f32(a, b);
}

static inline FRAMED_HD flt flt_fma(flt a, flt b, flt c) // a * b + c
{
    return vfmaq_f32(c, a, b);
}

static inline FRAMED_HD void flt_store(float *to, flt a)
{
    vst1q_f32(to, a);
}

static inline FRAMED_HD void flt_store_half(uint16_t *to, flt a)
{
    vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(a)));
}

#endif
