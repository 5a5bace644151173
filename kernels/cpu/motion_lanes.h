// Motion in wide registers: cells of a row are 16-bit lanes, and rows are whole registers.
#ifndef FRAMED_KERNELS_CPU_MOTION_LANES_H
#define FRAMED_KERNELS_CPU_MOTION_LANES_H

#ifdef __aarch64__
#include "kernels/cpu/vector_neon.h"
#else
#include "kernels/cpu/vector_x86.h"
#endif
#include "kernels/motion_step.h"

_Static_assert(MOTION_LANES % LANES == 0, "a row of cells is whole registers");

typedef int8_t half_s8 __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef uint16_t half_u16 __attribute__((vector_size(VECTOR_BYTES / 2)));

static inline FRAMED_HD void store_plane(uint16_t *at, vec_s16 v)
{
    store_u8(at, (vec_u8)v);
}

static inline FRAMED_HD vec_s16 select_s16(vec_s16 mask, vec_s16 a, vec_s16 b)
{
    return (a & mask) | (b & ~mask);
}

static inline int lanes_sum(vec_s16 v)
{
    int sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += v[i];
    return sum;
}

// All ones in the lanes of cells that are not masked out.
static inline FRAMED_HD vec_s16 mask_load(const uint8_t *at)
{
    half_s8 mask;
    memcpy(&mask, at, sizeof(mask));
    return __builtin_convertvector(mask, vec_s16);
}

// --- means

static inline void lanes_means(const struct motion *m, const uint32_t *sums, uint16_t *mean)
{
    for (int y = 0; y < m->rows; y++, sums += m->columns, mean += m->stride) {
        const uint32_t *mean_of = m->mean_of[m->row_tall[y]];
        const uint8_t *mask = m->mask + y * m->stride;
        int x = 0;
        for (; x + FLOATS <= m->columns; x += FLOATS) {
            const vec_u32 sum = (vec_u32)load_u8(sums + x) >> m->sum_shift;
            const vec_u32 level = sum * (vec_u32)load_u8(mean_of + x) >> 16;
            const half_u16 half = __builtin_convertvector(level, half_u16);
            memcpy(mean + x, &half, sizeof(half));
        }
        for (; x < m->columns; x++)
            mean[x] = (uint16_t)cell_mean(sums[x], m->sum_shift, mean_of[x], 1);
        memset(mean + x, 0, sizeof(*mean) * (size_t)(m->stride - x));
        for (x = 0; x < m->stride; x += LANES)
            store_plane(mean + x, load_s16(mean + x) & mask_load(mask + x));
    }
}

// --- light

static inline FRAMED_HD vec_s16 lanes_lit(vec_s16 level, struct motion_light light)
{
    enum { HALF_MOST = (CELL_WHITE - CELL_BLACK) / 2 };
    const vec_s16 dark = level == 0;
    if (light.gain != GAIN_ONE) {
        const vec_s16 above = max_s16(level - CELL_BLACK, all_s16(0));
        const vec_u16 gain = (vec_u16)all_s16(light.gain * 16);
        vec_s16 half = (vec_s16)mulhi_u16((vec_u16)above * 2, gain);
        half = select_s16((vec_s16)((vec_u16)half > HALF_MOST), all_s16(HALF_MOST), half);
        level = level - above + 2 * half;
    }
    level = adds_s16(level, all_s16(light.shift));
    return max_s16(min_s16(level, all_s16(CELL_WHITE)), all_s16(0)) & ~dark;
}

static inline FRAMED_HD vec_s16 lanes_tell(vec_s16 ref)
{
    return (vec_s16)(ref >= CELL_DIM) & (vec_s16)(ref <= CELL_BRIGHT);
}

static int lanes_above(const struct motion *m, const uint16_t *mean, const uint16_t *ref,
                       struct motion_light light)
{
    vec_s16 n = all_s16(0);
    for (int i = 0; i < m->stride * m->rows; i += LANES) {
        const vec_s16 level = load_s16(ref + i);
        n -= lanes_tell(level) & (vec_s16)(load_s16(mean + i) > lanes_lit(level, light));
    }
    return lanes_sum(n);
}

static int lanes_far(const struct motion *m, const uint16_t *mean, const uint16_t *ref,
                     struct motion_light light)
{
    vec_s16 n = all_s16(0);
    for (int i = 0; i < m->stride * m->rows; i += LANES) {
        const vec_s16 level = load_s16(ref + i);
        const vec_s16 off = abs_s16(load_s16(mean + i) - lanes_lit(level, light));
        n -= lanes_tell(level) & (vec_s16)(off > CELL_FAR);
    }
    return lanes_sum(n);
}

static inline struct motion_light lanes_light(const struct motion *m, const uint16_t *mean,
                                              const uint16_t *ref)
{
    vec_s16 tell = all_s16(0), above = tell, below = tell;
    for (int i = 0; i < m->stride * m->rows; i += LANES) {
        const vec_s16 level = load_s16(ref + i), now = load_s16(mean + i);
        const vec_s16 even = (level >> 8) + (level >> 9), tells = lanes_tell(level);
        tell -= tells;
        above -= tells & (vec_s16)(now > adds_s16(level, even));
        below -= tells & (vec_s16)(now < level - even);
    }
    const int all = lanes_sum(tell);
    if (2 * lanes_sum(above) <= all && 2 * lanes_sum(below) <= all)
        return (struct motion_light){GAIN_ONE, 0};
    return motion_light_median(m, mean, ref, all, lanes_above, lanes_far);
}

// Returns the background in that light: `ref` itself if the light is unchanged.
static inline const uint16_t *plane_lit(const struct motion *m, const uint16_t *ref, uint16_t *room,
                                        struct motion_light light)
{
    if (light.gain == GAIN_ONE && light.shift == 0)
        return ref;
    for (int i = 0; i < m->stride * m->rows; i += LANES)
        store_plane(room + i, lanes_lit(load_s16(ref + i), light));
    return room;
}

// --- changes

struct lanes_lights {
    const uint16_t *slow, *fast;
    struct motion_light slow_light, fast_light;
};

// Offsets in a plane of a row and its neighbours; rows at the border are repeated.
static inline void rows_around(const struct motion *m, int y, int row[3])
{
    row[0] = (y > 0 ? y - 1 : 0) * m->stride;
    row[1] = y * m->stride;
    row[2] = (y < m->rows - 1 ? y + 1 : y) * m->stride;
}

static inline void line_end(const struct motion *m, int16_t *line)
{
    line[-1] = line[0];
    line[m->stride] = line[m->columns] = line[m->columns - 1];
}

static inline FRAMED_HD vec_s16 line_sum(const int16_t *at)
{
    return load_s16(at - 1) + load_s16(at) + load_s16(at + 1);
}

static inline FRAMED_HD vec_s16 line_max(const int16_t *at)
{
    return max_s16(max_s16(load_s16(at - 1), load_s16(at)), load_s16(at + 1));
}

static inline FRAMED_HD vec_s16 line_min(const int16_t *at)
{
    return min_s16(min_s16(load_s16(at - 1), load_s16(at)), load_s16(at + 1));
}

static inline FRAMED_HD vec_s16 lanes_difference(vec_s16 mean, vec_s16 lit)
{
    return max_s16(min_s16(mean - lit, all_s16(DIFFERENCE_MAX)), all_s16(-DIFFERENCE_MAX));
}

// Fills lines with values of columns of three cells: the largest and the least lit slow, and the
// sums of differences from slow and from fast.
static inline void lines_make(const struct motion *m, const struct lanes_lights *lights, int y,
                              const struct motion_workspace *w)
{
    int row[3];
    rows_around(m, y, row);
    for (int x = 0; x < m->stride; x += LANES) {
        vec_s16 high = all_s16(0), low = all_s16(CELL_WHITE), slows = high, fasts = high;
        for (int k = 0; k < 3; k++) {
            const vec_s16 mean = load_s16(w->mean + row[k] + x);
            const vec_s16 slow = load_s16(lights->slow + row[k] + x);
            high = max_s16(high, slow);
            low = min_s16(low, slow);
            slows += lanes_difference(mean, slow);
            fasts += lanes_difference(mean, load_s16(lights->fast + row[k] + x));
        }
        store_s16(w->line[0] + x, high);
        store_s16(w->line[1] + x, low);
        store_s16(w->line[2] + x, slows);
        store_s16(w->line[3] + x, fasts);
    }
    for (int i = 0; i < MOTION_LINES; i++)
        line_end(m, w->line[i]);
}

static inline FRAMED_HD vec_s16 lanes_changed(const struct motion *m, vec_s16 differences,
                                              vec_s16 noise, int threshold, vec_s16 range,
                                              vec_s16 lit, struct motion_light light)
{
    const vec_s16 wanted = (noise * 5 >> 5) + (int16_t)threshold;
    vec_s16 tolerance = mulhi_s16(wanted * 8, all_s16(m->threshold_scale * 32));
    tolerance = adds_s16(tolerance, mulhi_s16(range, all_s16(RANGE_SHARE)));
    if (light.gain != GAIN_ONE)
        tolerance = adds_s16(tolerance, mulhi_s16(lit, all_s16(abs(light.gain - GAIN_ONE) * 8)));
    if (light.shift != 0)
        tolerance = adds_s16(tolerance, all_s16(abs(light.shift) >> 3));
    return (vec_s16)(mulhi_s16(abs_s16(differences), all_s16(NINTH)) > tolerance);
}

// Counts of a picture's cells per lane.
struct lanes_counts {
    vec_s16 fast, both;
};

// Returns true if a cell of the row moved.
static inline bool row_mark(const struct motion *m, const uint16_t *noise,
                            const struct lanes_lights *lights, int y,
                            const struct motion_workspace *w, struct lanes_counts *counts)
{
    vec_s16 moved = all_s16(0);
    for (int x = 0; x < m->stride; x += LANES) {
        const int i = y * m->stride + x;
        const vec_s16 mask = mask_load(m->mask + i), loud = load_s16(noise + i);
        const vec_s16 range = line_max(w->line[0] + x) - line_min(w->line[1] + x);
        const vec_s16 slow =
            mask & lanes_changed(m, line_sum(w->line[2] + x), loud, SLOW_THRESHOLD, range,
                                 load_s16(lights->slow + i), lights->slow_light);
        const vec_s16 fast =
            mask & lanes_changed(m, line_sum(w->line[3] + x), loud, FAST_THRESHOLD, range,
                                 load_s16(lights->fast + i), lights->fast_light);
        store_plane(w->change + i, (slow & CHANGE_SLOW) | (fast & CHANGE_FAST));
        counts->fast -= fast;
        moved -= slow & fast;
    }
    counts->both += moved;
    return lanes_sum(moved) != 0;
}

static inline void row_mark_edges(const struct motion *m, const struct lanes_lights *lights, int y,
                                  const struct motion_workspace *w)
{
    int row[3];
    rows_around(m, y, row);
    for (int x = 0; x < m->stride; x += LANES) {
        vec_s16 over = all_s16(-CELL_WHITE), under = all_s16(CELL_WHITE);
        for (int k = 0; k < 3; k++) {
            const vec_s16 difference =
                load_s16(w->mean + row[k] + x) - load_s16(lights->slow + row[k] + x);
            over = max_s16(over, difference);
            under = min_s16(under, difference);
        }
        store_s16(w->line[2] + x, over);
        store_s16(w->line[3] + x, under);
    }
    line_end(m, w->line[2]);
    line_end(m, w->line[3]);
    for (int x = 0; x < m->stride; x += LANES) {
        uint16_t *change = w->change + y * m->stride + x;
        const vec_u16 uneven =
            (vec_u16)line_max(w->line[2] + x) - (vec_u16)line_min(w->line[3] + x);
        const vec_s16 range = line_max(w->line[0] + x) - line_min(w->line[1] + x);
        const vec_s16 slow = load_s16(lights->slow + y * m->stride + x);
        const vec_s16 above = max_s16(slow - CELL_BLACK, all_s16(0));
        const vec_s16 least =
            mulhi_s16(above, all_s16(EDGE_SHARE)) + mulhi_s16(range, all_s16(RANGE_SHARE));
        const vec_s16 edge =
            (vec_s16)(load_s16(change) == CHANGE_BOTH) & (vec_s16)(uneven > (vec_u16)least);
        store_plane(change, load_s16(change) | (edge & CHANGE_EDGE));
    }
}

// --- backgrounds

static inline FRAMED_HD vec_s16 lanes_average(vec_s16 average, vec_s16 target, vec_s16 share,
                                              int rounding)
{
    const vec_s16 way = target - average;
    const vec_u16 low = (vec_u16)way * (vec_u16)share, sum = low + (uint16_t)rounding;
    return average + mulhi_s16(way, share) - (vec_s16)(sum < low);
}

static inline FRAMED_HD vec_s16 lanes_noise(const struct motion *m, vec_s16 noise, vec_s16 residual,
                                            int rounding)
{
    const vec_s16 limit = (vec_s16)((vec_u16)noise * 6 >> NOISE_BITS) + RESIDUAL_LEAST;
    const vec_s16 capped = min_s16(min_s16(residual, limit), all_s16(RESIDUAL_MAX));
    const vec_s16 target = capped << NOISE_BITS;
    const vec_s16 share = select_s16((vec_s16)(target > noise), all_s16(m->noise_up_share),
                                     all_s16(m->noise_down_share));
    const vec_s16 next = lanes_average(noise, target, share, rounding);
    return max_s16(min_s16(next, all_s16(NOISE_MAX)), all_s16(NOISE_MIN));
}

static inline void lanes_update(const struct motion *m, const struct motion_state *state,
                                const struct lanes_lights *lights, const struct motion_workspace *w,
                                const struct motion_step *step)
{
    uint16_t *slow = motion_plane(m, state, MOTION_SLOW);
    uint16_t *fast = motion_plane(m, state, MOTION_FAST);
    uint16_t *noise = motion_plane(m, state, MOTION_NOISE);
    uint16_t *age = motion_plane(m, state, MOTION_AGE);
    const vec_s16 fast_share = all_s16(step->fast_share == SHARE_ALL ? 0 : step->fast_share);
    const vec_s16 after = all_s16(m->absorb_after), one = all_s16(1);
    const vec_s16 jump = all_s16(step->jump ? 0 : -1), settling = all_s16(step->settling ? 0 : -1);
    for (int i = 0; i < m->stride * m->rows; i += LANES) {
        const vec_s16 mean = load_s16(w->mean + i);
        const vec_s16 change = load_s16(w->change + i) & CHANGE_BOTH;
        const vec_s16 alone = (vec_s16)(change == CHANGE_SLOW) & jump;
        const vec_s16 old = min_s16(load_s16(age + i) + one, after) & alone;
        const vec_s16 absorbed = (vec_s16)(old == after) & settling;
        const vec_s16 moved = (vec_s16)(change == CHANGE_BOTH) & settling;
        const vec_s16 lit_fast = load_s16(lights->fast + i), lit_slow = load_s16(lights->slow + i);
        const vec_s16 share =
            select_s16(absorbed, all_s16(m->absorb_share), all_s16(step->slow_share)) & ~moved;
        store_plane(age + i, old);
        if (!step->jump)
            store_plane(noise + i, lanes_noise(m, load_s16(noise + i), abs_s16(mean - lit_fast),
                                               step->rounding));
        store_plane(slow + i, step->slow_share == SHARE_ALL
                                  ? mean
                                  : lanes_average(lit_slow, mean, share, step->rounding));
        store_plane(fast + i, step->fast_share == SHARE_ALL
                                  ? mean
                                  : lanes_average(lit_fast, mean, fast_share, step->rounding));
    }
}

static inline void row_list(const struct motion *m, const struct motion_workspace *w, int y,
                            struct motion_changes *changes)
{
    enum { WORD = 4 };
    const uint16_t *change = w->change + y * m->stride;
    for (int x = 0; x < m->stride; x += WORD) {
        uint64_t word;
        memcpy(&word, change + x, sizeof(word));
        if (!word)
            continue;
        for (int k = x; k < x + WORD; k++)
            if ((change[k] & CHANGE_BOTH) == CHANGE_BOTH)
                changes->cell[changes->count++] =
                    (uint16_t)((y * m->columns + k) << 1 | change[k] >> 2);
    }
}

// --- a step

static inline void lanes_motion(const struct motion *m, struct motion_state *state,
                                const uint32_t *sums, struct motion_changes *changes,
                                void *workspace)
{
    const struct motion_workspace w = motion_workspace_at(m, workspace);
    const uint16_t *slow = motion_plane(m, state, MOTION_SLOW);
    const uint16_t *fast = motion_plane(m, state, MOTION_FAST);
    struct motion_light slow_light = {GAIN_ONE, 0}, fast_light = {GAIN_ONE, 0};
    struct lanes_counts lanes = {all_s16(0), all_s16(0)};
    bool moved[MOTION_ROWS_MAX];
    lanes_means(m, sums, w.mean);
    if (state->steps > 0) {
        slow_light = lanes_light(m, w.mean, slow);
        fast_light = lanes_light(m, w.mean, fast);
    }
    *changes = (struct motion_changes){.slow = slow_light, .fast = fast_light};
    const struct lanes_lights lights = {plane_lit(m, slow, w.slow, slow_light),
                                        plane_lit(m, fast, w.fast, fast_light), slow_light,
                                        fast_light};
    for (int y = 0; y < m->rows; y++) {
        lines_make(m, &lights, y, &w);
        moved[y] = row_mark(m, motion_plane(m, state, MOTION_NOISE), &lights, y, &w, &lanes);
        if (moved[y])
            row_mark_edges(m, &lights, y, &w);
    }
    const struct motion_counts counts = {lanes_sum(lanes.fast), lanes_sum(lanes.both)};
    const struct motion_step step = motion_step_of(m, state, counts, changes);
    for (int y = 0; y < m->rows && !step.settling; y++)
        if (moved[y])
            row_list(m, &w, y, changes);
    lanes_update(m, state, &lights, &w, &step);
}

#endif
