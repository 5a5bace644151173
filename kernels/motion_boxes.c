// Makes boxes from a list of moved cells.
#include <string.h>

#include "kernels/motion_workspace.h"

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
static void join(struct run *runs, uint16_t a, uint16_t b)
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
            join(runs, (uint16_t)k, (uint16_t)n);
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
