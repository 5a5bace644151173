// Trilinear interpolation: n points, each in a cell of its own whose 8 corners have f features,
// forward and backward. Like detection (kernels/detect.h) it is no picture op; libframed has it for
// programs that fit tables of colours or learn features on a grid.
//
//   features   n x 8 x f. Corner k lies where bit 2 of k says in x, bit 1 in y and bit 0 in z: 0 at
//              -1, 1 at +1. So a point's corners are an array [x][y][z] of 2 x 2 x 2.
//   points     n x 3: x, y, z, from -1 to 1; beyond that it extrapolates.
//   out        n x f: sum of w_k * features_k
//
// With u = (x + 1) / 2, and 1 - u for the corners at -1, the same for y and z, the weight w_k is
// the product of corner k's three: (x's * y's) * z's. The gradients are those of this sum:
//   features   w_k * grad_out
//   points     of x: 1/2 * sum over y and z of (y's * z's) * (d of the corner at +1 - d of that at
//              -1), where d_k is the sum over the features of grad_out * features_k
//
// All arithmetic is binary32, rounded to nearest, without fused products, in the order that stands
// here, so that every version gives the same bytes but those of a NaN. The sum of `out` goes from
// corner 0 to 7. That of d_k goes to TRILINEAR_LANES sums in turn, feature i to sum i %
// TRILINEAR_LANES, each from 0 on; then the upper half is added to the lower one until a single sum
// is left.
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
    TRILINEAR_FEATURES_MAX = 1 << 24, // f, of libframed and CUDA, which counts corners in 32 bits
};

// How near a point is to the two ends of each axis: share[axis][1] is u.
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

// The gradient of a point's coordinate from the sums d of its corners.
static inline FRAMED_HD float trilinear_slope(const struct trilinear_shares *of, const float *d,
                                              int axis)
{
    const int bit = 4 >> axis; // of the axis in a corner's number, and of the two others:
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

// On the host, in one thread. Arrays do not overlap. `out` has n x f floats.
void trilinear_forward(float *out, const float *features, const float *points, size_t n, size_t f);

// grad_features n x 8 x f, NULL: not wanted; grad_points n x 3, NULL: not wanted, and then
// `features` is not read.
void trilinear_backward(float *grad_features, float *grad_points, const float *grad_out,
                        const float *features, const float *points, size_t n, size_t f);

#ifdef __cplusplus
}
#endif
#endif
