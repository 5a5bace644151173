// Colour look-up tables: map a pixel's levels R, G and B by the nodes of a cube. A LUT is made from
// a .cube file's numbers and never changes. Every version gives the same bytes, with exact
// integers:
//   axes     level v of a channel is in cell c of its axis, with weight w of the cell's far end in
//            units of 1 / WEIGHT_ONE: tables of 256 entries, computed in double. They include the
//            input range, and a curve ahead of the cube. Curves alone have a cube of two points.
//   nodes    0 to 1 as 8-bit levels, rounded half up; values outside are clamped.
//   weights  of a cell's eight corners, which sum to WEIGHT_ONE; r, g and b are the weights along
//            the axes, and every product is rounded down:
//            trilinear    split into near and far along g and b (far in both: g * b), then each of
//                         the four is split along r
//            tetrahedral  for a corner that is far along some axes: the least weight of these
//                         minus the largest of the others, at least 0
//   level    the sum of weights times nodes, rounded half up, once.
// A level differs from the interpolation of unrounded nodes by less than 1.1: half a level from the
// nodes, half from the level itself, and the error of the weights.
#ifndef FRAMED_KERNELS_LUT_H
#define FRAMED_KERNELS_LUT_H

#include "kernels/fixed.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LUT_POINTS_MIN = 2,
    LUT_POINTS_MAX = 65,          // along each axis of the cube
    LUT_CURVE_POINTS_MAX = 65536, // of a curve
    LUT_PLANE = 16,               // bytes of struct lut_plane
};

enum lut_interpolation { LUT_TRILINEAR, LUT_TETRAHEDRAL };

// Contents of a .cube file. Numbers are finite.
struct lut_params {
    int curve_points;   // 0: no curve
    const float *curve; // R, G and B of each point
    int points;         // 0: no cube, only a curve
    const float *nodes; // R, G and B of each node; the first axis, red, changes fastest
    // Inputs of the first and the last point, where levels are 0 to 1; last > first.
    double curve_first[3], curve_last[3], first[3], last[3];
    enum lut_interpolation interpolation;
};

// Four nodes with the same red: node[channel][far along green * 2 + far along blue], minus 128.
struct lut_plane {
    int8_t node[3][4];
    int8_t unused[4];
} __attribute__((aligned(16)));

// One block of memory: copying lut_bytes() bytes makes another LUT, on a device too.
struct lut {
    int references;
    int cube_points, curve_points; // of lut_params, for descriptions
    int points;                    // of the cube of `plane`
    enum lut_interpolation interpolation;
    bool linear; // every axis is level * (points - 1) / 255
    // Cell (red, green, blue) begins at plane[red * step_red + green * step_green + blue]; its far
    // side along red is step_red further.
    int step_red, step_green;
    uint16_t weight[3][256];
    uint8_t cell[3][256]; // at most points - 2
    struct lut_plane plane[];
};

// Returns 0 and a reference for lut_unref; -EINVAL for params out of bounds; -ENOMEM.
int lut_make(struct lut **ret, const struct lut_params *);
// Any thread. Both accept NULL; ref returns its argument.
struct lut *lut_ref(const struct lut *);
void lut_unref(const struct lut *);

size_t lut_bytes(const struct lut *);
// True if both give the same levels in every version. NULL equals NULL alone.
bool lut_equal(const struct lut *, const struct lut *);

// --- one pixel, for C and CUDA

// Weights of a cell's corners: [far along red][far along green * 2 + far along blue].
static inline FRAMED_HD void lut_trilinear(int r, int g, int b, int weight[2][4])
{
    const int both = g * b >> WEIGHT_BITS;
    const int near_far[4] = {WEIGHT_ONE - g - b + both, b - both, g - both, both};
    for (int i = 0; i < 4; i++) {
        weight[1][i] = near_far[i] * r >> WEIGHT_BITS;
        weight[0][i] = near_far[i] - weight[1][i];
    }
}

static inline FRAMED_HD int lut_least(int a, int b)
{
    return a < b ? a : b;
}

static inline FRAMED_HD int lut_most(int a, int b)
{
    return a > b ? a : b;
}

static inline FRAMED_HD void lut_tetrahedral(int r, int g, int b, int weight[2][4])
{
    const int rg = lut_most(r, g), rb = lut_most(r, b), gb = lut_most(g, b);
    weight[0][0] = WEIGHT_ONE - lut_most(rg, b);
    weight[0][1] = lut_most(b - rg, 0);
    weight[0][2] = lut_most(g - rb, 0);
    weight[0][3] = lut_most(lut_least(g, b) - r, 0);
    weight[1][0] = lut_most(r - gb, 0);
    weight[1][1] = lut_most(lut_least(r, b) - g, 0);
    weight[1][2] = lut_most(lut_least(r, g) - b, 0);
    weight[1][3] = lut_least(lut_least(r, g), b);
}

// Level c of R, G and B.
static inline FRAMED_HD int lut_level(const struct lut_plane *near, const struct lut_plane *far,
                                      const int weight[2][4], int c)
{
    int sum = 128 * WEIGHT_ONE + WEIGHT_ONE / 2;
    for (int i = 0; i < 4; i++)
        sum += near->node[c][i] * weight[0][i] + far->node[c][i] * weight[1][i];
    return sum >> WEIGHT_BITS;
}

// Maps R, G and B in place.
static inline FRAMED_HD void lut_pixel(const struct lut *lut, uint8_t level[3])
{
    const struct lut_plane *near = lut->plane + lut->cell[0][level[0]] * lut->step_red +
                                   lut->cell[1][level[1]] * lut->step_green +
                                   lut->cell[2][level[2]];
    int weight[2][4];
    const int r = lut->weight[0][level[0]], g = lut->weight[1][level[1]];
    const int b = lut->weight[2][level[2]];
    if (lut->interpolation == LUT_TETRAHEDRAL)
        lut_tetrahedral(r, g, b, weight);
    else
        lut_trilinear(r, g, b, weight);
    for (int c = 0; c < 3; c++)
        level[c] = (uint8_t)lut_level(near, near + lut->step_red, weight, c);
}

#ifdef __cplusplus
}
#endif
#endif
