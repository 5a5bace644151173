// Random grids of cells with their sums, and random lumas, for tests of the fingerprint.
#ifndef FRAMED_TESTS_KERNELS_FINGERPRINT_CASES_H
#define FRAMED_TESTS_KERNELS_FINGERPRINT_CASES_H

#include <math.h>

#include "kernels/fingerprint.h"
#include "tests/kernels/random.h"

struct grid {
    int cells;
    int32_t edges[FINGERPRINT_CELLS_MAX + 1];
};

static inline void grid_random(struct grid *grid, struct random *random)
{
    static const int usual[] = {1, 5, 18, 31, 32, 33, 90, 96, 160, FINGERPRINT_CELLS_MAX};
    grid->cells =
        random_next(random) % 2 ? usual[random_in(random, 0, 9)] : random_in(random, 1, 320);
    const int most = random_next(random) % 4 ? 12 : IMAGE_SIDE_MAX;
    int side = grid->cells * random_in(random, 1, most) + random_in(random, 0, grid->cells);
    side = side > IMAGE_SIDE_MAX ? IMAGE_SIDE_MAX : side;
    for (int i = 0; i <= grid->cells; i++)
        grid->edges[i] = (int32_t)((int64_t)i * side / grid->cells);
}

// Fills sums: all black, all white, or anything the cells' pixels can reach in 32 bits.
static inline void sums_random(uint32_t sums[], const struct grid *x, const struct grid *y,
                               struct random *random)
{
    const int kind = random_in(random, 0, 3);
    for (int i = 0; i < x->cells * y->cells; i++) {
        const int column = i % x->cells, row = i / x->cells;
        const int64_t white = (int64_t)(x->edges[column + 1] - x->edges[column]) *
                              (y->edges[row + 1] - y->edges[row]) * 255;
        const uint64_t most = (uint64_t)(white < UINT32_MAX ? white : UINT32_MAX);
        sums[i] = (uint32_t)(kind == 0 ? 0 : kind == 1 ? most : random_next(random) % (most + 1));
    }
}

// Fills a luma: noise, a random soft picture, two levels, a checkerboard, all equal, or a ramp.
static inline void luma_random(uint8_t luma[FINGERPRINT_LUMA], struct random *random)
{
    const int kind = random_in(random, 0, 7), step = random_in(random, 1, 8);
    const int a = random_in(random, 0, 255), b = random_in(random, 0, 255);
    const double fx = random_in(random, 0, 40) / 10.0, fy = random_in(random, 0, 40) / 10.0;
    for (int i = 0; i < FINGERPRINT_LUMA; i++) {
        const int x = i % FINGERPRINT_SIDE, y = i / FINGERPRINT_SIDE;
        if (kind <= 1)
            luma[i] = (uint8_t)random_next(random);
        else if (kind <= 3)
            luma[i] = (uint8_t)(127.5 + 100 * sin(fx * x / 5 + fy * y / 4) * cos(fy * x / 7 - fx) +
                                random_in(random, -4, 4));
        else if (kind == 4)
            luma[i] = random_next(random) % 2 ? 255 : 0;
        else if (kind == 5)
            luma[i] = (uint8_t)(x / step + y / step) % 2 ? a : b;
        else
            luma[i] = (uint8_t)(kind == 6 ? a : a + x * step / 4);
    }
    if (kind == 6 && step > 4)
        luma[random_in(random, 0, FINGERPRINT_LUMA - 1)] = (uint8_t)b;
}

#endif
