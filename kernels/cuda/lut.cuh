// A colour look-up table on CUDA: the levels of kernels/lut.h. A cell's nodes take two loads; the
// loads of several pixels overlap, because each step is made for all of them before the next one.
#ifndef FRAMED_KERNELS_CUDA_LUT_CUH
#define FRAMED_KERNELS_CUDA_LUT_CUH

#include "kernels/lut.h"

// The values that all pixels share.
struct lut_registers {
    const struct lut *lut; // device memory
    const int4 *plane;
    int step_red, step_green;
    unsigned cells; // along an axis
    bool linear, tetrahedral;
};

static __device__ inline struct lut_registers lut_registers_of(const struct lut *lut)
{
    return {lut,
            (const int4 *)lut->plane,
            lut->step_red,
            lut->step_green,
            (unsigned)lut->points - 1,
            lut->linear != 0,
            lut->interpolation == LUT_TETRAHEDRAL};
}

// A level's place along an axis; weight4 is 4 times the weight of the cell's far end.
struct lut_place {
    int cell;
    unsigned weight4;
};

// For a linear axis. A level on a node is at the far end of the cell before it, where lut.h may
// have the near end of the next one: both give only that node. 32896 / 2^23 is less than 1 / 255,
// by so little that a level between nodes stays in its cell.
static __device__ inline struct lut_place lut_place_linear(unsigned cells, unsigned level)
{
    const unsigned cell = level * (cells * 32896u) >> 23;
    // (rest * 257 + 2) / 4 is rest * WEIGHT_ONE / 255, rounded
    const unsigned weight = level * (cells * 257) + (2 - cell * (255 * 257));
    return {(int)cell, weight & ~3u};
}

static __device__ inline struct lut_place lut_place_of(const struct lut *lut, int c, int level)
{
    return {__ldg(&lut->cell[c][level]), 4u * __ldg(&lut->weight[c][level])};
}

// Returns the high halves as a pair, the first in the low half.
static __device__ inline unsigned high_halves(unsigned first, unsigned second)
{
    return __byte_perm(first, second, 0x7632);
}

// The weights of kernels/lut.h as pairs of 16 bits: [far along red][far along green].
static __device__ inline void lut_trilinear_pairs(unsigned r4, unsigned g, unsigned b,
                                                  unsigned weight[2][2])
{
    const unsigned both = g * b >> WEIGHT_BITS;
    const unsigned far_blue = b - both, far_green = g - both, neither = WEIGHT_ONE - g - far_blue;
    weight[1][0] = high_halves(neither * r4, far_blue * r4);
    weight[1][1] = high_halves(far_green * r4, both * r4);
    weight[0][0] = neither + far_blue * 65536 - weight[1][0];
    weight[0][1] = far_green + both * 65536 - weight[1][1];
}

// Returns a - b, at least 0.
static __device__ inline unsigned pairs_above(unsigned a, unsigned b)
{
    return __vmaxu2(a, b) - b;
}

static __device__ inline void lut_tetrahedral_pairs(unsigned r, unsigned g, unsigned b,
                                                    unsigned weight[2][2])
{
    const unsigned rr = r * 65537, gg = g * 65537, far = b * 65536;
    const unsigned one_b = far + WEIGHT_ONE;
    weight[0][0] = pairs_above(one_b, __vmaxu2(__vmaxu2(rr, gg), b));
    weight[0][1] = pairs_above(__vminu2(gg, one_b), __vmaxu2(rr, b));
    weight[1][0] = pairs_above(__vminu2(rr, one_b), __vmaxu2(gg, b));
    weight[1][1] = pairs_above(__vminu2(__vminu2(rr, gg), one_b), b);
}

static __device__ inline int lut_sum(int near, int far, const unsigned weight[2][2])
{
    int sum = 128 * WEIGHT_ONE + WEIGHT_ONE / 2;
    sum = __dp2a_lo((int)weight[0][0], near, sum);
    sum = __dp2a_hi((int)weight[0][1], near, sum);
    sum = __dp2a_lo((int)weight[1][0], far, sum);
    return __dp2a_hi((int)weight[1][1], far, sum) >> WEIGHT_BITS;
}

// Looks up R, G and B of N pixels, in place.
template <int N>
static __device__ inline void lut_look_up(const struct lut_registers *s, int level[3][N])
{
    struct lut_place place[3][N];
    int4 near[N], far[N];
    unsigned weight[N][2][2];
    if (s->linear) {
#pragma unroll
        for (int i = 0; i < N; i++)
            for (int c = 0; c < 3; c++)
                place[c][i] = lut_place_linear(s->cells, level[c][i]);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            for (int c = 0; c < 3; c++)
                place[c][i] = lut_place_of(s->lut, c, level[c][i]);
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int cell =
            place[0][i].cell * s->step_red + place[1][i].cell * s->step_green + place[2][i].cell;
        near[i] = __ldg(s->plane + cell);
        far[i] = __ldg(s->plane + cell + s->step_red);
    }
    if (s->tetrahedral) {
#pragma unroll
        for (int i = 0; i < N; i++)
            lut_tetrahedral_pairs(place[0][i].weight4 >> 2, place[1][i].weight4 >> 2,
                                  place[2][i].weight4 >> 2, weight[i]);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            lut_trilinear_pairs(place[0][i].weight4, place[1][i].weight4 >> 2,
                                place[2][i].weight4 >> 2, weight[i]);
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        level[0][i] = lut_sum(near[i].x, far[i].x, weight[i]);
        level[1][i] = lut_sum(near[i].y, far[i].y, weight[i]);
        level[2][i] = lut_sum(near[i].z, far[i].z, weight[i]);
    }
}

#endif
