// Colour look-up tables: from the levels R, G and B of a pixel to those of another picture, by the
// nodes of a cube. A LUT is made once from a .cube file's numbers and never changes. Every version
// gives the same bytes; exact integers:
//   axes     level v of a channel lies in cell c of its axis, at weight w of the cell's far end in
//            units of 1 / WEIGHT_ONE: tables of 256 entries, made in double. The range of the
//            input, and a curve that stands ahead of the cube, lie in these tables. Curves alone
//            are a cube of two points behind them.
//   nodes    0 to 1 as levels of 8 bits, rounded half up; what lies beyond is clamped.
//   weights  of a cell's eight corners, which sum to WEIGHT_ONE; with r, g and b the weights along
//            the axes and every product rounded down:
//            trilinear    near and far are divided along g and b (far both: g * b), then each of
//                         the four along r
//            tetrahedral  of the corner that is far along some axes: the least weight of these less
//                         the largest of the others, and no less than 0
//   level    the sum of weights times nodes, rounded half up, once.
// So a level is off the interpolation of unrounded nodes by less than 1.1: half a level by the
// nodes, half by the level itself, and what the weights are off.
#ifndef FRAMED_KERNELS_LUT_H
#define FRAMED_KERNELS_LUT_H

#include "kernels/fixed.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LUT_POINTS_MIN = 2,
    LUT_POINTS_MAX = 65,          // of the cube along each axis
    LUT_CURVE_POINTS_MAX = 65536, // of a curve
    LUT_PLANE = 16,               // bytes of struct lut_plane
};

enum lut_interpolation { LUT_TRILINEAR, LUT_TETRAHEDRAL };

// What a .cube file says. Numbers are finite.
struct lut_params {
    int curve_points;   // 0: no curve
    const float *curve; // of each point R, G and B
    int points;         // 0: no cube, only a curve
    const float *nodes; // of each node R, G and B; the first axis, red, changes fastest
    // The input that the first and the last point stand for, with levels from 0 to 1; last > first.
    double curve_first[3], curve_last[3], first[3], last[3];
    enum lut_interpolation interpolation;
};

// Four nodes of one red: near and far along green, and of each near and far along blue, as R, G and
// B less 128.
struct lut_plane {
    int8_t node[3][4];
    int8_t unused[4];
} __attribute__((aligned(16)));

// In one piece, so that a copy of lut_bytes() is another one, on a device too.
struct lut {
    int references;
    int cube_points, curve_points; // of lut_params, for who describes it
    int points;                    // of the cube that the nodes make
    enum lut_interpolation interpolation;
    bool linear; // every axis is level * (points - 1) / 255
    // Where (cell along red, green, blue) begins: plane[red * step_red + green * step_green +
    // blue]; the far side along red is step_red further.
    int step_red, step_green;
    uint16_t weight[3][256];
    uint8_t cell[3][256]; // at most points - 2
    struct lut_plane plane[];
};

// 0, with a reference for lut_unref; -EINVAL: params out of bounds; -ENOMEM.
int lut_make(struct lut **ret, const struct lut_params *);
// Any thread. Both accept NULL; ref returns its argument.
struct lut *lut_ref(const struct lut *);
void lut_unref(const struct lut *);

size_t lut_bytes(const struct lut *);
// Whether both give the same levels in every version; NULL: none.
bool lut_equal(const struct lut *, const struct lut *);

// --- one pixel, for C and CUDA alike

// The weights of a cell's corners: [far along red][far along green * 2 + far along blue].
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

// Level c, of R, G and B.
static inline FRAMED_HD int lut_level(const struct lut_plane *near, const struct lut_plane *far,
                                      const int weight[2][4], int c)
{
    int sum = 128 * WEIGHT_ONE + WEIGHT_ONE / 2;
    for (int i = 0; i < 4; i++)
        sum += near->node[c][i] * weight[0][i] + far->node[c][i] * weight[1][i];
    return sum >> WEIGHT_BITS;
}

// R, G and B, in place.
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
