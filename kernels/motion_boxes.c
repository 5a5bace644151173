// From a list of moved cells to boxes.
#include <string.h>

#include "kernels/motion_workspace.h"

enum {
    NEAR = 2,       // cells between a box and that of the picture before
    EDGE_CELLS = 8, // of a box: one has an edge
};

// Cells that touch, while they are found: of a group its first cell's entry, the root.
struct group {
    uint16_t root; // of each cell: a cell of its group that comes earlier, or itself
    uint16_t left, top, right, bottom; // of a root: cells, both ends included
    uint16_t cells, edges;
};

size_t motion_workspace_bytes(const struct motion *m)
{
    const size_t step = motion_workspace_at(m, NULL).bytes;
    const size_t boxes = sizeof(struct group) * (size_t)(m->columns * m->rows);
    return step > boxes ? step : boxes;
}

static uint16_t root_of(struct group *groups, uint16_t i)
{
    while (groups[i].root != i)
        i = groups[i].root = groups[groups[i].root].root;
    return i;
}

// Joins two cells' groups; the root is the one that comes first.
static void join(struct group *groups, uint16_t a, uint16_t b)
{
    a = root_of(groups, a);
    b = root_of(groups, b);
    if (a == b)
        return;
    struct group *to = &groups[a < b ? a : b], *from = &groups[a < b ? b : a];
    from->root = to->root;
    to->left = from->left < to->left ? from->left : to->left;
    to->top = from->top < to->top ? from->top : to->top;
    to->right = from->right > to->right ? from->right : to->right;
    to->bottom = from->bottom > to->bottom ? from->bottom : to->bottom;
    to->cells += from->cells;
    to->edges += from->edges;
}

// The list is in the order of rows: a cell's neighbours that come before it are the cell before it,
// and at most three in the row above, which `above` follows.
static void groups_find(const struct motion *m, const struct motion_changes *changes,
                        struct group *groups)
{
    uint32_t above = 0;
    for (uint32_t i = 0; i < changes->count; i++) {
        const int cell = changes->cell[i] >> 1, x = cell % m->columns, y = cell / m->columns;
        const uint16_t column = (uint16_t)x, row = (uint16_t)y, edge = changes->cell[i] & 1;
        groups[i] = (struct group){(uint16_t)i, column, row, column, row, 1, edge};
        if (i > 0 && x > 0 && changes->cell[i - 1] >> 1 == cell - 1)
            join(groups, (uint16_t)(i - 1), (uint16_t)i);
        if (y == 0)
            continue;
        const int first = cell - m->columns - (x > 0),
                  last = cell - m->columns + (x < m->columns - 1);
        while (changes->cell[above] >> 1 < first)
            above++;
        for (uint32_t k = above; changes->cell[k] >> 1 <= last; k++)
            join(groups, (uint16_t)k, (uint16_t)i);
    }
}

static struct motion_box box_of(const struct motion *m, const struct group *g)
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

// Into its place among the largest.
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
    struct group *groups = workspace;
    const struct motion_boxes before = *boxes;
    const int64_t picture = (int64_t)m->width * m->height, cells = (int64_t)m->columns * m->rows;
    *boxes = (struct motion_boxes){
        .changed = changes->count, .flags = changes->flags, .light = changes->fast};
    groups_find(m, changes, groups);
    for (uint32_t i = 0; i < changes->count; i++) {
        const struct group *g = &groups[i];
        if (g->root != i || g->cells < m->box_cells || g->edges * EDGE_CELLS < g->cells ||
            g->cells * picture < m->params.min_area * cells)
            continue;
        const struct motion_box box = box_of(m, g);
        box_add(boxes, &box);
    }
    boxes->moving = boxes_near(m, boxes, &before);
}
