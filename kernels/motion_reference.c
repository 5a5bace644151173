// Motion: init, layout of memory, the reference, and boxes.
#include "kernels/motion.h"

#include <errno.h>
#include <string.h>

#include "kernels/motion_step.h"
#include "kernels/statistics.h"

// --- init, and layout of memory

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

// --- a step in plain loops, the reference: every other version gives its bytes

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

// --- boxes from a list of moved cells

enum {
    NEAR = 2,       // cells between a box and one of the previous picture
    EDGE_CELLS = 8, // at least one in so many of a box has an edge
};

// Adjacent moved cells of a row. Runs that touch form a group; its first run is the root, which
// holds the group's values.
struct run {
    uint16_t root; // an earlier run of its group, or itself
    uint16_t row, first, last;
    uint16_t left, top, right, bottom; // of a root: cells, inclusive
    uint16_t cells, edges;
};

size_t motion_workspace_bytes(const struct motion *m)
{
    const size_t step = motion_workspace_at(m, NULL).bytes;
    const size_t runs = sizeof(struct run) * (size_t)((m->columns + 1) / 2 * m->rows);
    return step > runs ? step : runs;
}

static uint16_t root_of(struct run *runs, uint16_t i)
{
    while (runs[i].root != i)
        i = runs[i].root = runs[runs[i].root].root;
    return i;
}

// Joins two runs' groups; the earlier root stays the root.
static void runs_join(struct run *runs, uint16_t a, uint16_t b)
{
    a = root_of(runs, a);
    b = root_of(runs, b);
    if (a == b)
        return;
    struct run *to = &runs[a < b ? a : b], *from = &runs[a < b ? b : a];
    from->root = to->root;
    to->left = from->left < to->left ? from->left : to->left;
    to->top = from->top < to->top ? from->top : to->top;
    to->right = from->right > to->right ? from->right : to->right;
    to->bottom = from->bottom > to->bottom ? from->bottom : to->bottom;
    to->cells += from->cells;
    to->edges += from->edges;
}

// Returns the run that begins at entry i of the list.
static struct run run_at(const struct motion *m, const struct motion_changes *changes, uint32_t i)
{
    const int cell = changes->cell[i] >> 1, x = cell % m->columns;
    int cells = 0, edges = 0;
    do
        edges += changes->cell[i++] & 1;
    while (x + ++cells < m->columns && i < changes->count && changes->cell[i] >> 1 == cell + cells);
    const uint16_t row = (uint16_t)(cell / m->columns), first = (uint16_t)x;
    const uint16_t last = (uint16_t)(x + cells - 1);
    return (struct run){
        .row = row,
        .first = first,
        .last = last,
        .left = first,
        .top = row,
        .right = last,
        .bottom = row,
        .cells = (uint16_t)cells,
        .edges = (uint16_t)edges,
    };
}

// The list is ordered by rows: the runs of the row above that touch a run follow each other, from
// `above` on. Returns the number of runs.
static uint32_t runs_find(const struct motion *m, const struct motion_changes *changes,
                          struct run *runs)
{
    uint32_t n = 0, above = 0;
    for (uint32_t i = 0; i < changes->count; n++) {
        struct run *const run = &runs[n];
        *run = run_at(m, changes, i);
        run->root = (uint16_t)n;
        i += run->cells;
        while (above < n && (runs[above].row + 1 < run->row ||
                             (runs[above].row < run->row && runs[above].last + 1 < run->first)))
            above++;
        for (uint32_t k = above; runs[k].row < run->row && runs[k].first <= run->last + 1; k++)
            runs_join(runs, (uint16_t)k, (uint16_t)n);
    }
    return n;
}

static struct motion_box box_of(const struct motion *m, const struct run *g)
{
    return (struct motion_box){(int32_t)((int64_t)g->left * m->width / m->columns),
                               (int32_t)((int64_t)g->top * m->height / m->rows),
                               (int32_t)((int64_t)(g->right + 1) * m->width / m->columns),
                               (int32_t)((int64_t)(g->bottom + 1) * m->height / m->rows), g->cells};
}

static bool goes_before(const struct motion_box *a, const struct motion_box *b)
{
    if (a->cells != b->cells)
        return a->cells > b->cells;
    return a->y1 != b->y1 ? a->y1 < b->y1 : a->x1 < b->x1;
}

// Inserts the box in order; keeps the largest MOTION_BOXES_MAX.
static void box_add(struct motion_boxes *boxes, const struct motion_box *box)
{
    uint32_t at = boxes->count;
    while (at > 0 && goes_before(box, &boxes->box[at - 1]))
        at--;
    if (at == MOTION_BOXES_MAX)
        return;
    boxes->count += boxes->count < MOTION_BOXES_MAX;
    memmove(&boxes->box[at + 1], &boxes->box[at], sizeof(*box) * (size_t)(boxes->count - 1 - at));
    boxes->box[at] = *box;
}

static bool boxes_near(const struct motion *m, const struct motion_boxes *a,
                       const struct motion_boxes *b)
{
    const int x = NEAR * (m->width / m->columns + 1), y = NEAR * (m->height / m->rows + 1);
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < b->count; k++)
            if (a->box[i].x1 <= b->box[k].x2 + x && b->box[k].x1 <= a->box[i].x2 + x &&
                a->box[i].y1 <= b->box[k].y2 + y && b->box[k].y1 <= a->box[i].y2 + y)
                return true;
    return false;
}

void motion_boxes(const struct motion *m, const struct motion_changes *changes,
                  struct motion_boxes *boxes, void *workspace)
{
    struct run *runs = workspace;
    const struct motion_boxes before = *boxes;
    const int64_t picture = (int64_t)m->width * m->height, cells = (int64_t)m->columns * m->rows;
    *boxes = (struct motion_boxes){
        .changed = changes->count, .flags = changes->flags, .light = changes->fast};
    const uint32_t n = runs_find(m, changes, runs);
    for (uint32_t i = 0; i < n; i++) {
        const struct run *g = &runs[i];
        if (g->root != i || g->cells < m->box_cells || g->edges * EDGE_CELLS < g->cells ||
            g->cells * picture < m->params.min_area * cells)
            continue;
        const struct motion_box box = box_of(m, g);
        box_add(boxes, &box);
    }
    boxes->moving = boxes_near(m, boxes, &before);
}
