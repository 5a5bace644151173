// A step of motion in plain loops, the reference: every other version gives its bytes.
#include <string.h>

#include "kernels/motion_reference.h"

static void means_of(const struct motion *m, const uint32_t *sums, uint16_t *mean)
{
    for (int y = 0; y < m->rows; y++) {
        memset(mean + y * m->stride, 0, sizeof(*mean) * (size_t)m->stride);
        for (int x = 0; x < m->columns; x++)
            mean[y * m->stride + x] =
                (uint16_t)cell_mean(sums[y * m->columns + x], m->sum_shift,
                                    m->mean_of[m->row_tall[y]][x], m->mask[y * m->stride + x]);
    }
}

// --- light

// Counts cells above the background in that light, if the background shows the light.
static int cells_above(const struct motion *m, const uint16_t *mean, const uint16_t *ref,
                       struct motion_light light)
{
    int n = 0;
    for (int i = 0; i < m->stride * m->rows; i++)
        n += cell_tells(ref[i]) && mean[i] > cell_lit(ref[i], light);
    return n;
}

// Counts cells far from it, under the same condition.
static int cells_far(const struct motion *m, const uint16_t *mean, const uint16_t *ref,
                     struct motion_light light)
{
    int n = 0;
    for (int i = 0; i < m->stride * m->rows; i++)
        n += cell_tells(ref[i]) && abs(mean[i] - cell_lit(ref[i], light)) > CELL_FAR;
    return n;
}

// Reports an unchanged light if at most half of the cells are clearly above the background, and at
// most half below.
static struct motion_light light_of(const struct motion *m, const uint16_t *mean,
                                    const uint16_t *ref)
{
    int tell = 0, above = 0, below = 0;
    for (int i = 0; i < m->stride * m->rows; i++) {
        tell += cell_tells(ref[i]);
        above += cell_tells(ref[i]) && mean[i] > ref[i] + cell_even(ref[i]);
        below += cell_tells(ref[i]) && mean[i] < ref[i] - cell_even(ref[i]);
    }
    if (2 * above <= tell && 2 * below <= tell)
        return (struct motion_light){GAIN_ONE, 0};
    return motion_light_median(m, mean, ref, tell, cells_above, cells_far);
}

// --- changes

// Values over a cell and its neighbours; cells at the border are repeated.
struct around {
    int slow, fast; // sums of the differences
    int range;      // of lit slow
    int uneven;     // range of unclamped differences from lit slow
};

static struct around around_of(const struct motion *m, const struct motion_workspace *w, int x,
                               int y)
{
    struct around a = {0};
    int lo = CELL_WHITE, hi = 0, least = CELL_WHITE, most = -CELL_WHITE;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            const int i =
                clamp_to(y + dy, 0, m->rows - 1) * m->stride + clamp_to(x + dx, 0, m->columns - 1);
            const int mean = w->mean[i], slow = w->slow[i], difference = mean - slow;
            a.slow += cell_difference(mean, slow);
            a.fast += cell_difference(mean, w->fast[i]);
            lo = slow < lo ? slow : lo;
            hi = slow > hi ? slow : hi;
            least = difference < least ? difference : least;
            most = difference > most ? difference : most;
        }
    a.range = hi - lo;
    a.uneven = most - least;
    return a;
}

static struct motion_counts changes_mark(const struct motion *m, const struct motion_state *state,
                                         const struct motion_changes *changes,
                                         const struct motion_workspace *w)
{
    const uint16_t *noise = motion_plane(m, state, MOTION_NOISE);
    struct motion_counts counts = {0};
    for (int y = 0; y < m->rows; y++)
        for (int x = 0; x < m->stride; x++) {
            const int i = y * m->stride + x, slow = w->slow[i], fast = w->fast[i];
            int change = 0;
            if (m->mask[i]) {
                const struct around a = around_of(m, w, x, y);
                if (cell_changed(m, a.slow, noise[i], SLOW_THRESHOLD, a.range, slow, changes->slow))
                    change |= CHANGE_SLOW;
                if (cell_changed(m, a.fast, noise[i], FAST_THRESHOLD, a.range, fast, changes->fast))
                    change |= CHANGE_FAST;
                counts.fast += change >> 1;
                counts.both += change == CHANGE_BOTH;
                if (change == CHANGE_BOTH && cell_edge(a.uneven, a.range, slow))
                    change |= CHANGE_EDGE;
            }
            w->change[i] = (uint16_t)change;
        }
    return counts;
}

// --- backgrounds

static void cell_update(const struct motion *m, const struct motion_state *state,
                        const struct motion_workspace *w, const struct motion_step *step, int i)
{
    uint16_t *slow = motion_plane(m, state, MOTION_SLOW) + i;
    uint16_t *fast = motion_plane(m, state, MOTION_FAST) + i;
    uint16_t *noise = motion_plane(m, state, MOTION_NOISE) + i;
    uint16_t *age = motion_plane(m, state, MOTION_AGE) + i;
    const int mean = w->mean[i], change = w->change[i] & CHANGE_BOTH;
    const bool alone = change == CHANGE_SLOW;
    const int older = *age + 1 < m->absorb_after ? *age + 1 : m->absorb_after;
    *age = (uint16_t)(alone && !step->jump ? older : 0);
    int share = step->slow_share;
    if (!step->settling && change == CHANGE_BOTH)
        share = 0;
    else if (!step->settling && *age == m->absorb_after)
        share = m->absorb_share;
    *slow = (uint16_t)cell_average(w->slow[i], mean, share, step->rounding);
    *fast = (uint16_t)cell_average(w->fast[i], mean, step->fast_share, step->rounding);
    if (!step->jump)
        *noise = (uint16_t)cell_noise(m, *noise, abs(mean - w->fast[i]), step->rounding);
}

void motion_reference(const struct motion *m, struct motion_state *state, const uint32_t *sums,
                      struct motion_changes *changes, void *workspace)
{
    const struct motion_workspace w = motion_workspace_at(m, workspace);
    const uint16_t *slow = motion_plane(m, state, MOTION_SLOW);
    const uint16_t *fast = motion_plane(m, state, MOTION_FAST);
    *changes = (struct motion_changes){.slow = {GAIN_ONE, 0}, .fast = {GAIN_ONE, 0}};
    means_of(m, sums, w.mean);
    if (state->steps > 0) {
        changes->slow = light_of(m, w.mean, slow);
        changes->fast = light_of(m, w.mean, fast);
    }
    for (int i = 0; i < m->stride * m->rows; i++) {
        w.slow[i] = (uint16_t)cell_lit(slow[i], changes->slow);
        w.fast[i] = (uint16_t)cell_lit(fast[i], changes->fast);
    }
    const struct motion_counts counts = changes_mark(m, state, changes, &w);
    const struct motion_step step = motion_step_of(m, state, counts, changes);
    for (int y = 0; y < m->rows; y++)
        for (int x = 0; x < m->stride; x++) {
            const int i = y * m->stride + x, edge = w.change[i] >> 2;
            if (!step.settling && (w.change[i] & CHANGE_BOTH) == CHANGE_BOTH)
                changes->cell[changes->count++] = (uint16_t)((y * m->columns + x) << 1 | edge);
            cell_update(m, state, &w, &step, i);
        }
}
