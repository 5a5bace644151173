// Cameras drawn as sums of cells for tests of CUDA's motion: any grid, with changing lights,
// objects, noise and pictures of extremes only.
#ifndef FRAMED_TESTS_KERNELS_MOTION_CASES_H
#define FRAMED_TESTS_KERNELS_MOTION_CASES_H

#include <string.h>

#include "kernels/motion.h"
#include "kernels/statistics.h"
#include "tests/kernels/random.h"

struct motion_case {
    struct statistics statistics;
    struct motion motion;
    struct random random;
    int steps;
    uint32_t *sums;
    // The reference's:
    struct motion_state *state;
    struct motion_changes *changes;
    void *workspace;
};

static inline void *motion_memory(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(memory, UNTOUCHED, bytes);
    return memory;
}

static inline size_t motion_sums_bytes(const struct motion *m)
{
    return (size_t)(m->columns * m->rows) * sizeof(uint32_t);
}

static inline void motion_case_init(struct motion_case *c, uint64_t seed)
{
    static uint8_t mask[MOTION_CELLS_MAX];
    struct motion_params params = motion_defaults();
    struct statistics_params grid;
    struct image image;
    memset(&grid, 0, sizeof grid);
    memset(&image, 0, sizeof image);
    memset(c, 0, sizeof *c);
    c->random.state = seed;
    image.format = PIXEL_GRAY;
    image.width = random_in(&c->random, 1, 2000);
    image.height = random_in(&c->random, 1, 1200);
    grid.columns = random_in(&c->random, 1, 40);
    grid.rows = random_in(&c->random, 1, 25);
    grid.white = 255;
    params.sensitivity = random_in(&c->random, 1, 100);
    params.rate_num = random_in(&c->random, 1, 60);
    params.rate_den = 1;
    for (int i = 0; i < MOTION_CELLS_MAX; i++)
        mask[i] = i == 0 || random_in(&c->random, 0, 20);
    params.mask = random_in(&c->random, 0, 1) ? mask : NULL;
    statistics_init(&c->statistics, &grid, &image);
    motion_init(&c->motion, &params, &c->statistics, NULL);
    c->sums = (uint32_t *)motion_memory(motion_sums_bytes(&c->motion));
    c->state = (struct motion_state *)motion_memory(motion_state_bytes(&c->motion));
    memset(c->state, 0, motion_state_bytes(&c->motion));
    c->changes = (struct motion_changes *)motion_memory(motion_changes_bytes(&c->motion));
    c->workspace = motion_memory(motion_workspace_bytes(&c->motion));
}

static inline void motion_case_finish(struct motion_case *c)
{
    free(c->sums);
    free(c->state);
    free(c->changes);
    free(c->workspace);
}

// Draws the next picture and runs the reference's step on it.
static inline void motion_case_step(struct motion_case *c)
{
    struct random *r = &c->random;
    const struct statistics *s = &c->statistics;
    const int kind = random_in(r, 0, 9), grain = random_in(r, 0, 9);
    const int gain = kind == 0 ? random_in(r, 30, 330) : kind == 1 ? random_in(r, 97, 103) : 100;
    const int shift = kind == 2 ? random_in(r, -70, 70) : 0;
    for (int y = 0; y < s->rows; y++)
        for (int x = 0; x < s->columns; x++) {
            const int area = (s->column_edges[x + 1] - s->column_edges[x]) *
                             (s->row_edges[y + 1] - s->row_edges[y]);
            const int ground = 60 + x / 2 + (x / 8 + y / 8) % 2 * 30;
            int luma = ground * gain / 100 + shift + random_in(r, -grain, grain);
            luma = (x + c->steps) % 60 < 9 && y % 40 > 30 ? 255 - luma : luma;
            luma = kind == 3 ? random_in(r, 0, 1) * 255 : luma;
            c->sums[y * s->columns + x] = (uint32_t)(clamp_to(luma, 0, 255) * area);
        }
    c->steps++;
    motion_reference(&c->motion, c->state, c->sums, c->changes, c->workspace);
}

// Compares two steps: the list only up to its count.
static inline bool motion_changes_equal(const struct motion_changes *a,
                                        const struct motion_changes *b)
{
    return memcmp(a, b, sizeof *a) == 0 &&
           memcmp(a->cell, b->cell, a->count * sizeof *a->cell) == 0;
}

#endif
