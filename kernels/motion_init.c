#include <errno.h>

#include "kernels/motion_cell.h"
#include "kernels/motion_workspace.h"
#include "kernels/statistics.h"

enum {
    RATE_USUAL = 15, // pictures per second, if unknown

    // milliseconds
    SLOW_TIME = 12800,
    ABSORB_TIME = 300,
    FAST_TIME = 300,
    NOISE_UP_TIME = 6400,
    NOISE_DOWN_TIME = 12800,
    ABSORB_AFTER = 1000,
    QUIET_TIME = 600,
    JUMP_TIME = 400,
    LEARN_TIME = 2000,

    CELLS_A_BOX = 1600, // cells of the grid per cell of the smallest box
};

struct motion_params motion_defaults(void)
{
    return (struct motion_params){.sensitivity = 50};
}

// 2 ** ((50 - sensitivity) / 25) in Q8, linear between powers of two.
static int threshold_scale_of(int sensitivity)
{
    const int octave = (100 - sensitivity) / 25, part = (100 - sensitivity) % 25;
    return (64 << octave) + (64 << octave) * part / 25;
}

// Share of a new picture in an average over that time.
static int share_of(const struct motion_params *p, int time)
{
    const int64_t picture = (int64_t)1000 * p->rate_den,
                  all = picture + (int64_t)time * p->rate_num;
    const int64_t share = (SHARE_ALL * picture + all / 2) / all;
    return share < SHARE_HALF ? (int)share : SHARE_HALF;
}

// Number of pictures in that time, at least 1.
static int pictures_in(const struct motion_params *p, int time)
{
    const int64_t picture = (int64_t)1000 * p->rate_den;
    const int64_t n = ((int64_t)time * p->rate_num + picture / 2) / picture;
    return n < 1 ? 1 : (int)n;
}

static void times_set(struct motion *m)
{
    struct motion_params p = m->params;
    if (p.rate_num == 0)
        p.rate_num = RATE_USUAL, p.rate_den = 1;
    m->slow_share = share_of(&p, SLOW_TIME);
    m->absorb_share = share_of(&p, ABSORB_TIME);
    m->fast_share = share_of(&p, FAST_TIME);
    m->noise_up_share = share_of(&p, NOISE_UP_TIME);
    m->noise_down_share = share_of(&p, NOISE_DOWN_TIME);
    m->absorb_after = pictures_in(&p, ABSORB_AFTER);
    m->quiet_after = pictures_in(&p, QUIET_TIME);
    m->jump_window = pictures_in(&p, JUMP_TIME);
    m->learn_for = pictures_in(&p, LEARN_TIME);
}

// A cell's mean in Q7 is sum * 128 / area. Sums keep 16 bits, so that the product with the
// reciprocal of the area, of at most 2 widths and 2 heights, fits 32 bits.
static void grid_set(struct motion *m, const struct statistics *s, const uint8_t *mask)
{
    const int tall = s->height / s->rows, largest = (s->width / s->columns + 1) * (tall + 1);
    while ((int64_t)largest * 255 >> m->sum_shift > UINT16_MAX)
        m->sum_shift++;
    for (int x = 0; x < m->columns; x++)
        for (int taller = 0; taller < 2; taller++) {
            const int width = s->column_edges[x + 1] - s->column_edges[x];
            const uint64_t area = (uint64_t)width * (uint64_t)(tall + taller);
            m->mean_of[taller][x] =
                (uint32_t)(((UINT64_C(1) << (16 + 7 + m->sum_shift)) + area / 2) / area);
        }
    for (int y = 0; y < m->rows; y++) {
        m->row_tall[y] = s->row_edges[y + 1] - s->row_edges[y] > tall;
        for (int x = 0; x < m->columns; x++) {
            const bool live = !mask || mask[y * m->columns + x];
            m->mask[y * m->stride + x] = live ? 255 : 0;
            m->live += live;
        }
    }
}

static const char *mistake_of(const struct motion_params *p, const struct statistics *s)
{
    if (s->columns > MOTION_COLUMNS_MAX || s->rows > MOTION_ROWS_MAX ||
        s->columns * s->rows > MOTION_CELLS_MAX)
        return "motion: the grid has too many cells: 25600 are allowed, 320 in a row or column";
    if ((int64_t)(s->width / s->columns + 1) * (s->height / s->rows + 1) > UINT32_MAX / 255)
        return "motion: the grid has too few cells for a picture of this size";
    if (p->sensitivity < 1 || p->sensitivity > 100)
        return "motion: sensitivity is 1 to 100";
    if (p->min_area < 0)
        return "motion: min_area is 0 or more pixels";
    if ((p->rate_num || p->rate_den) && (p->rate_num < 1 || p->rate_den < 1 ||
                                         p->rate_num > (int64_t)MOTION_RATE_MAX * p->rate_den))
        return "motion: the rate is above 0 and at most 240 pictures a second";
    return NULL;
}

int motion_init(struct motion *motion, const struct motion_params *params,
                const struct statistics *statistics, const char **ret_why)
{
    const char *why = mistake_of(params, statistics);
    if (!why) {
        const int columns = statistics->columns, rows = statistics->rows;
        *motion = (struct motion){.params = *params, .columns = columns, .rows = rows};
        motion->params.mask = NULL;
        motion->width = statistics->width;
        motion->height = statistics->height;
        motion->stride = (columns + MOTION_LANES - 1) / MOTION_LANES * MOTION_LANES;
        motion->threshold_scale = threshold_scale_of(params->sensitivity);
        motion->box_cells = (columns * rows + CELLS_A_BOX / 2) / CELLS_A_BOX;
        motion->box_cells += motion->box_cells < 1;
        times_set(motion);
        grid_set(motion, statistics, params->mask);
        if (!motion->live)
            why = "motion: the mask leaves no cell of the picture";
    }
    if (ret_why)
        *ret_why = why;
    return why ? -EINVAL : 0;
}

size_t motion_state_bytes(const struct motion *motion)
{
    return sizeof(struct motion_state) +
           sizeof(uint16_t) * MOTION_PLANES * (size_t)(motion->stride * motion->rows);
}

size_t motion_changes_bytes(const struct motion *motion)
{
    return sizeof(struct motion_changes) +
           sizeof(uint16_t) * (size_t)(motion->columns * motion->rows);
}

struct motion_workspace motion_workspace_at(const struct motion *m, void *base)
{
    const size_t plane = sizeof(uint16_t) * (size_t)(m->stride * m->rows);
    const size_t line = sizeof(int16_t) * (size_t)(m->stride + 2 * MOTION_LANES);
    uintptr_t at = (uintptr_t)base;
    struct motion_workspace w = {.bytes = 4 * plane + MOTION_LINES * line};
    w.mean = (uint16_t *)at;
    w.slow = (uint16_t *)(at + plane);
    w.fast = (uint16_t *)(at + 2 * plane);
    w.change = (uint16_t *)(at + 3 * plane);
    at += 4 * plane + sizeof(int16_t) * MOTION_LANES;
    for (int i = 0; i < MOTION_LINES; i++)
        w.line[i] = (int16_t *)(at + (size_t)i * line);
    return w;
}
