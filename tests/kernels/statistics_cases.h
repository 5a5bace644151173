// Random pictures for tests of CUDA's statistics: every source, with rows the kernels read 16 bytes
// at a time, and with others.
#ifndef FRAMED_TESTS_KERNELS_STATISTICS_CASES_H
#define FRAMED_TESTS_KERNELS_STATISTICS_CASES_H

#include <string.h>

#include "kernels/statistics.h"
#include "tests/kernels/random.h"

struct statistics_case {
    struct statistics statistics;
    struct image image;
    uint8_t *memory; // of all planes
    size_t bytes;
    struct luma_statistics expected;
    uint32_t *cells; // expected; statistics.columns x statistics.rows
};

static inline bool one_in(struct random *random, int n)
{
    return random_in(random, 0, n - 1) == 0;
}

static inline void case_size(struct image *image, struct random *random)
{
    image->width = one_in(random, 3) ? random_in(random, 1, 90) : random_in(random, 64, 700);
    image->height = one_in(random, 4) ? random_in(random, 1, 8) : random_in(random, 9, 120);
    if (one_in(random, 16)) { // wider than the threads of a block cover at once
        image->width = random_in(random, 3800, 4500);
        image->height = random_in(random, 1, 9);
    }
    if (one_in(random, 2))
        image->width = (image->width + 15) / 16 * 16;
}

// Lays all planes out in one piece of memory.
static inline void case_planes(struct statistics_case *c, struct random *random)
{
    struct image *image = &c->image;
    const enum pixel_format format = image->format;
    const bool aligned = !one_in(random, 4), upward = one_in(random, 4);
    ptrdiff_t at[PLANES_MAX];
    c->bytes = 0;
    for (int p = 0; p < pixel_format_planes(format); p++) {
        const int rows = plane_rows(format, p, image->height);
        size_t stride = plane_row_bytes(format, p, image->width) + 2 * random_in(random, 0, 20);
        if (aligned)
            stride = (stride + 15) / 16 * 16;
        c->bytes += aligned ? 0 : 2 * (size_t)random_in(random, 0, 7);
        at[p] = (ptrdiff_t)(c->bytes + (upward ? stride * (rows - 1) : 0));
        c->bytes = (c->bytes + stride * rows + 15) / 16 * 16;
        image->plane[p].stride = upward ? -(ptrdiff_t)stride : (ptrdiff_t)stride;
    }
    c->memory = (uint8_t *)aligned_alloc(16, c->bytes);
    for (int p = 0; p < pixel_format_planes(format); p++)
        image->plane[p].data = c->memory + at[p];
}

static inline enum pixel_format source_random(struct random *random)
{
    enum pixel_format format;
    do
        format = (enum pixel_format)random_in(random, 0, PIXEL_FORMATS - 1);
    while (!(pixel_layout_of(format).uses & FORMAT_SOURCE));
    return format;
}

// Fills with random bytes, or black, white, or both alternating.
static inline void case_fill(struct statistics_case *c, struct random *random)
{
    const int pick = random_in(random, 0, 7);
    for (size_t i = 0; i < c->bytes; i++) {
        const uint8_t bytes[3] = {0, 255, (uint8_t)(i % 2 ? 255 : 0)};
        c->memory[i] = pick < 3 ? bytes[pick] : (uint8_t)(random_next(random) >> 8);
    }
}

static inline void case_init(struct statistics_case *c, enum pixel_format format, bool all,
                             struct random *random)
{
    struct statistics_params params;
    memset(c, 0, sizeof *c);
    memset(&params, 0, sizeof params);
    c->image.format = format;
    c->image.colour.matrix = one_in(random, 2) ? MATRIX_BT601 : MATRIX_BT709;
    case_size(&c->image, random);
    case_planes(c, random);
    case_fill(c, random);
    if (one_in(random, 2)) {
        params.columns = random_in(random, 1, STATISTICS_GRID_MAX);
        params.rows = random_in(random, 1, STATISTICS_GRID_MAX);
    }
    params.black = (uint8_t)random_in(random, 0, 99);
    params.white = (uint8_t)random_in(random, 100, 255);
    params.all = all;
    statistics_init(&c->statistics, &params, &c->image);
    c->cells =
        (uint32_t *)malloc((size_t)c->statistics.columns * c->statistics.rows * sizeof *c->cells);
    statistics_reference(&c->statistics, &c->image, &c->expected, c->cells);
}

static inline void case_finish(struct statistics_case *c)
{
    free(c->memory);
    free(c->cells);
}

static inline bool luma_statistics_equal(const struct luma_statistics *a,
                                         const struct luma_statistics *b)
{
    return a->sum == b->sum && a->squares == b->squares && a->laplacian == b->laplacian &&
           a->pixels == b->pixels && a->black == b->black && a->white == b->white &&
           a->min == b->min && a->max == b->max &&
           memcmp(a->histogram, b->histogram, sizeof a->histogram) == 0;
}

#endif
