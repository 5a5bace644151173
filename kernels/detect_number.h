// Arithmetic on a detector's output: elements, activations and keys. Every step is one binary32
// operation, rounded to nearest, or an integer one: C, SIMD and CUDA give the same bits as long as
// fused products are off (-ffp-contract=off, -fmad=false).
#ifndef FRAMED_KERNELS_DETECT_NUMBER_H
#define FRAMED_KERNELS_DETECT_NUMBER_H

#include <string.h>

#include "kernels/detect.h"

static inline FRAMED_HD float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline FRAMED_HD uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// --- elements

// Exact, except for a NaN's payload. Subnormals are multiplied, not shifted, because a thread may
// treat them as zero.
static inline FRAMED_HD float float_of_half(uint16_t half)
{
#ifdef __CUDA_ARCH__
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
#else
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, low = half & 0x7fff;
    if (low < 0x0400)
        return float_of_bits(sign | bits_of_float((float)low * 0x1p-24f));
    return float_of_bits(sign | ((low << 13) + (low < 0x7c00 ? 0x38000000u : 0x70000000u)));
#endif
}

static inline FRAMED_HD float element_at(const void *data, const struct detect_format *format,
                                         size_t i)
{
    switch (format->dtype) {
    case DETECT_F32:
        return ((const float *)data)[i];
    case DETECT_F16:
        return float_of_half(((const uint16_t *)data)[i]);
    case DETECT_BF16:
        return float_of_bits((uint32_t)((const uint16_t *)data)[i] << 16);
    case DETECT_S8:
        return (float)(((const int8_t *)data)[i] - format->zero) * format->scale;
    case DETECT_U8:
        return (float)(((const uint8_t *)data)[i] - format->zero) * format->scale;
    case DETECT_S32:
        return (float)((const int32_t *)data)[i];
    default:
        return (float)((const int64_t *)data)[i];
    }
}

// --- e to the power of x

// x = n * ln 2 + r, |r| <= 0.35: 1 + r + r^2 / 2 + ... + r^7 / 5040, times 2^n. n * EXP_LN2_HIGH is
// exact. The error is at most 1 ulp, as tests/kernels/detect.c measures; but the result is 0 if it
// or an intermediate step is subnormal.
#define EXP_MOST     89.0f
#define EXP_LEAST    -86.9f
#define EXP_LOG2E    0x1.715476p+0f
#define EXP_ROUND    0x1.8p+23f // adding and subtracting it rounds to a whole number
#define EXP_LN2_HIGH 0x1.62e4p-1f
#define EXP_LN2_LOW  0x1.7f7d1cp-20f

static inline FRAMED_HD float exp_steps(float x)
{
    if (x < EXP_LEAST)
        return 0;
    if (x > EXP_MOST)
        x = EXP_MOST;
    const float shifted = x * EXP_LOG2E + EXP_ROUND, n = shifted - EXP_ROUND;
    const float r = (x - n * EXP_LN2_HIGH) - n * EXP_LN2_LOW;
    float p = r * 0x1.a01a02p-13f + 0x1.6c16c2p-10f;
    p = p * r + 0x1.111112p-7f;
    p = p * r + 0x1.555556p-5f;
    p = p * r + 0x1.555556p-3f;
    p = p * r + 0.5f;
    p = (p * (r * r) + r) + 1;
    // 2^n as 2 * 2^(n - 1): n reaches 128. For NaN the bits are arbitrary, since p is NaN.
    const uint32_t power = (bits_of_float(shifted) + 126) << 23;
    return p * float_of_bits(power & 0x7f800000) * 2;
}

// The error is at most 2.5 ulp unless exp_steps(-x) is 0 or inf.
static inline FRAMED_HD float sigmoid_steps(float x)
{
    return 1 / (1 + exp_steps(-x));
}

// --- keys: the smaller one comes first

// Maps scores to numbers in reverse order. -0 becomes 0.
static inline FRAMED_HD uint32_t score_order(float score)
{
    const uint32_t bits = bits_of_float(score + 0.0f);
    return bits >> 31 ? bits : ~bits ^ 0x80000000;
}

static inline FRAMED_HD float score_of_order(uint32_t order)
{
    return float_of_bits(order >> 31 ? order : ~order ^ 0x80000000);
}

enum { KEY_LABEL_BITS = 12, KEY_SCORE_SHIFT = 32 };

static inline FRAMED_HD uint64_t key_of(float score, uint32_t anchor, uint32_t label)
{
    return (uint64_t)score_order(score) << KEY_SCORE_SHIFT | anchor << KEY_LABEL_BITS | label;
}

static inline FRAMED_HD float key_score(uint64_t key)
{
    return score_of_order((uint32_t)(key >> KEY_SCORE_SHIFT));
}

static inline FRAMED_HD uint32_t key_anchor(uint64_t key)
{
    return (uint32_t)key >> KEY_LABEL_BITS;
}

static inline FRAMED_HD int32_t key_label(uint64_t key)
{
    return (int32_t)(key & (DETECT_CLASSES_MAX - 1));
}

// --- finite

static inline FRAMED_HD bool is_finite(float x)
{
    return (bits_of_float(x) & 0x7f800000) != 0x7f800000;
}

static inline FRAMED_HD float nan_without_payload(float x)
{
    return x != x ? float_of_bits(0x7fc00000) : x;
}

// --- sine, cosine and atan2 in binary64 steps: + - * and / alone. The error is below 1e-9, far
// below the resolution of binary32.

#define ANGLE_MOST 1000.0f // radians, the largest argument of sincos_steps
#define ANGLE_PI   0x1.921fb54442d18p+1

static inline FRAMED_HD void sincos_steps(float angle, double *ret_sin, double *ret_cos)
{
    const double x = angle, shifted = x * 0x1.45f306dc9c883p-1 + 0x1.8p+52; // whole quarter turns
    const double n = shifted - 0x1.8p+52, r = x - n * (ANGLE_PI / 2), q = r * r;
    const double s =
        r -
        r * q * (1.0 / 6 - q * (1.0 / 120 - q * (1.0 / 5040 - q * (1.0 / 362880 - q / 39916800))));
    const double c =
        1 - q * (0.5 - q * (1.0 / 24 - q * (1.0 / 720 - q * (1.0 / 40320 - q / 3628800))));
    const int quarter = (int)n & 3;
    *ret_sin = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    *ret_cos = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}

// Angle of y / x for 0 <= y <= x, 0 < x, around 0 or 1/2, whichever is nearer: the series is short.
static inline FRAMED_HD double octant_steps(double y, double x)
{
    const bool near_half = 4 * y > x;
    const double t = near_half ? (2 * y - x) / (2 * x + y) : y / x, q = t * t;
    double sum = 0;
    for (int i = 21; i >= 1; i -= 2)
        sum = 1.0 / i - q * sum;
    return (near_half ? 0x1.dac670561bb4fp-2 : 0) + t * sum; // the constant is atan(1/2)
}

// Returns an angle in (-pi, pi]; 0 for (0, 0).
static inline FRAMED_HD double atan2_steps(double y, double x)
{
    const double ax = x < 0 ? -x : x, ay = y < 0 ? -y : y;
    if (!(ax > 0 || ay > 0))
        return 0;
    double angle = ay <= ax ? octant_steps(ay, ax) : ANGLE_PI / 2 - octant_steps(ax, ay);
    if (x < 0)
        angle = ANGLE_PI - angle;
    return y < 0 ? -angle : angle;
}

#endif
