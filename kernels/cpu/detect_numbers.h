// kernels/detect_number.h in lanes: elements and activations, with the same bits.
#ifndef FRAMED_KERNELS_CPU_DETECT_NUMBERS_H
#define FRAMED_KERNELS_CPU_DETECT_NUMBERS_H

#if defined(__aarch64__)
#include "kernels/cpu/vector_neon.h"
#else
#include "kernels/cpu/vector_x86.h"
#endif
#include "kernels/detect_number.h"

// Elements i to i + FLOATS - 1 of a tensor; `dtype` is a constant.
static inline FRAMED_HD vec_f32 elements_load(enum detect_dtype dtype, const void *data,
                                              const struct detect_format *format, size_t i)
{
    if (dtype == DETECT_F32)
        return load_f32((const float *)data + i);
    if (dtype == DETECT_F16)
        return load_half((const uint16_t *)data + i);
    if (dtype == DETECT_BF16)
        return (vec_f32)(words_widened((const uint16_t *)data + i) << 16);
    vec_s32 whole = levels_widened((const uint8_t *)data + i);
    if (dtype == DETECT_S8)
        whole = (whole ^ 128) - 128;
    return __builtin_convertvector(whole - format->zero, vec_f32) * format->scale;
}

static inline FRAMED_HD vec_f32 exp_lanes(vec_f32 x)
{
    const vec_s32 zero = x < EXP_LEAST;
    x = min_f32(all_f32(EXP_MOST), x);
    const vec_f32 shifted = x * EXP_LOG2E + EXP_ROUND, n = shifted - EXP_ROUND;
    const vec_f32 r = (x - n * EXP_LN2_HIGH) - n * EXP_LN2_LOW;
    vec_f32 p = r * 0x1.a01a02p-13f + 0x1.6c16c2p-10f;
    p = p * r + 0x1.111112p-7f;
    p = p * r + 0x1.555556p-5f;
    p = p * r + 0x1.555556p-3f;
    p = p * r + 0.5f;
    p = (p * (r * r) + r) + 1;
    const vec_u32 power = ((vec_u32)shifted + 126) << 23;
    const vec_f32 e = p * (vec_f32)(power & 0x7f800000) * 2;
    return (vec_f32)((vec_s32)e & ~zero);
}

static inline FRAMED_HD vec_f32 sigmoid_lanes(vec_f32 x)
{
    return 1 / (1 + exp_lanes(-x));
}

#endif
