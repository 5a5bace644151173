// A colour look-up table on CUDA: the arithmetic of kernels/lut.h, whose nodes come in two loads.
#ifndef FRAMED_KERNELS_CUDA_LUT_CUH
#define FRAMED_KERNELS_CUDA_LUT_CUH

#include "kernels/lut.h"

// What all pixels share.
struct lut_registers {
    const struct lut *lut; // device memory
    const int4 *plane;
    int points, step_red, step_green;
    bool linear, tetrahedral;
};

static __device__ inline struct lut_registers lut_registers_of(const struct lut *lut)
{
    return {lut,
            (const int4 *)lut->plane,
            lut->points,
            lut->step_red,
            lut->step_green,
            lut->linear != 0,
            lut->interpolation == LUT_TETRAHEDRAL};
}

// The cell of a level along axis c, and the weight of its far end.
static __device__ inline int lut_cell(const struct lut_registers *s, int c, int level, int *weight)
{
    if (!s->linear) {
        *weight = __ldg(&s->lut->weight[c][level]);
        return __ldg(&s->lut->cell[c][level]);
    }
    const int at = level * (s->points - 1);
    const int cell = min((at + 1 + (at >> 8)) >> 8, s->points - 2); // at / 255
    const int rest = at - 255 * cell;
    *weight = rest * 64 + ((rest + 2) >> 2); // rest * WEIGHT_ONE / 255, rounded
    return cell;
}

// Weights are pairs of 16 bits.
static __device__ inline int lut_sum(int near, int far, const int weight[2][2])
{
    int sum = 128 * WEIGHT_ONE + WEIGHT_ONE / 2;
    sum = __dp2a_lo(weight[0][0], near, sum);
    sum = __dp2a_hi(weight[0][1], near, sum);
    sum = __dp2a_lo(weight[1][0], far, sum);
    return __dp2a_hi(weight[1][1], far, sum) >> WEIGHT_BITS;
}

// R, G and B, in place.
static __device__ inline void lut_look_up(const struct lut_registers *s, int level[3])
{
    int at[3], each[2][4], weight[2][2];
    const int cell = lut_cell(s, 0, level[0], &at[0]) * s->step_red +
                     lut_cell(s, 1, level[1], &at[1]) * s->step_green +
                     lut_cell(s, 2, level[2], &at[2]);
    const int4 near = __ldg(s->plane + cell), far = __ldg(s->plane + cell + s->step_red);
    if (s->tetrahedral)
        lut_tetrahedral(at[0], at[1], at[2], each);
    else
        lut_trilinear(at[0], at[1], at[2], each);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            weight[i][k] = each[i][2 * k] + each[i][2 * k + 1] * 65536;
    level[0] = lut_sum(near.x, far.x, weight);
    level[1] = lut_sum(near.y, far.y, weight);
    level[2] = lut_sum(near.z, far.z, weight);
}

#endif
