// Trilinear interpolation, forward and backward: n points, each in its own cell whose 8 corners
// have f features. Like detection (kernels/detect.h) it is not a picture op. libframed offers it to
// programs that fit colour tables or learn features on a grid.
//
//   features   n x 8 x f. Bits 2, 1 and 0 of k place corner k in x, y and z: 0 at -1, 1 at +1. A
//              point's corners are thus an array [x][y][z] of 2 x 2 x 2.
//   points     n x 3: x, y, z, from -1 to 1; extrapolated beyond.
//   out        n x f: sum of w_k * features_k
//
// The weight w_k is the product of corner k's three factors, (x's * y's) * z's: u = (x + 1) / 2 for
// corners at +1, and 1 - u for those at -1; the same for y and z. The gradients of this sum:
//   features   w_k * grad_out
//   points     of x: 1/2 * sum over y and z of (y's * z's) * (d of the corner at +1 - d of the one
//              at -1), where d_k is the sum over the features of grad_out * features_k
//
// All arithmetic is binary32, rounded to nearest, without fused products, in the order given here:
// every version gives the same bytes except a NaN's. The sum of `out` goes from corner 0 to 7. The
// sum of d_k has TRILINEAR_LANES partial sums, each from 0 on: feature i goes to sum i %
// TRILINEAR_LANES; then the upper half is added to the lower one until a single sum is left.
#ifndef FRAMED_KERNELS_TRILINEAR_H
#define FRAMED_KERNELS_TRILINEAR_H

#include <stddef.h>

#include "kernels/image.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TRILINEAR_CORNERS = 8,
    TRILINEAR_AXES = 3,
    TRILINEAR_LANES = 8,
    TRILINEAR_FEATURES_MAX = 1 << 24, // f, in libframed and CUDA, which counts corners in 32 bits
};

// Nearness of a point to the two ends of each axis: share[axis][1] is u.
struct trilinear_shares {
    float share[TRILINEAR_AXES][2];
};

static inline FRAMED_HD struct trilinear_shares trilinear_shares_of(const float *point)
{
    struct trilinear_shares of;
    for (int axis = 0; axis < TRILINEAR_AXES; axis++) {
        of.share[axis][1] = (point[axis] + 1.0f) * 0.5f;
        of.share[axis][0] = 1.0f - of.share[axis][1];
    }
    return of;
}

static inline FRAMED_HD float trilinear_weight(const struct trilinear_shares *of, int k)
{
    const float x = k & 4 ? of->share[0][1] : of->share[0][0];
    const float y = k & 2 ? of->share[1][1] : of->share[1][0];
    const float z = k & 1 ? of->share[2][1] : of->share[2][0];
    return x * y * z;
}

// Gradient of a point's coordinate from the sums d of its corners.
static inline FRAMED_HD float trilinear_slope(const struct trilinear_shares *of, const float *d,
                                              int axis)
{
    const int bit = 4 >> axis; // the axis's bit in a corner's number; the two other axes:
    const int first = axis == 0 ? 1 : 0, second = axis == 2 ? 1 : 2;
    float sum = 0;
    for (int k = 0; k < TRILINEAR_CORNERS; k++) {
        if (k & bit)
            continue;
        const float share =
            of->share[first][(k & 4 >> first) != 0] * of->share[second][(k & 4 >> second) != 0];
        sum += share * (d[k | bit] - d[k]);
    }
    return 0.5f * sum;
}

// On the host, in the calling thread. Arrays do not overlap. `out` has n x f floats.
void trilinear_forward(float *out, const float *features, const float *points, size_t n, size_t f);

// grad_features: n x 8 x f, or NULL. grad_points: n x 3, or NULL, and then `features` is not read.
void trilinear_backward(float *grad_features, float *grad_points, const float *grad_out,
                        const float *features, const float *points, size_t n, size_t f);

#ifdef __cplusplus
}
#endif
#endif
