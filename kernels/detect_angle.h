// Sine, cosine and atan2 in binary64 steps with the same bits everywhere: + - * and / alone. The
// error is below 1e-9, far below the resolution of binary32.
#ifndef FRAMED_KERNELS_DETECT_ANGLE_H
#define FRAMED_KERNELS_DETECT_ANGLE_H

#include "kernels/image.h"

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
