#include "daemon/scene/mask.h"

// True if a ray from (x, y) to the right crosses the edge from a to b. x and y are doubled, as the
// middle of a cell may lie between two pixels.
static bool crosses(struct point a, struct point b, int64_t x, int64_t y)
{
    const int64_t ay = 2 * a.y, by = 2 * b.y;
    if ((ay > y) == (by > y))
        return false;
    const int64_t left = (x - 2 * a.x) * (by - ay), right = 2 * (int64_t)(b.x - a.x) * (y - ay);
    return by > ay ? left < right : left > right;
}

static bool is_inside(const struct polygon *polygon, int64_t x, int64_t y)
{
    bool inside = false;
    for (int i = 0, before = polygon->n - 1; i < polygon->n; before = i++)
        inside ^= crosses(polygon->point[before], polygon->point[i], x, y);
    return inside;
}

void mask_cells(const struct polygons *polygons, const struct statistics *cells, uint8_t *mask)
{
    for (int row = 0; row < cells->rows; row++) {
        const int64_t y = (int64_t)cells->row_edges[row] + cells->row_edges[row + 1];
        for (int column = 0; column < cells->columns; column++) {
            const int64_t x =
                (int64_t)cells->column_edges[column] + cells->column_edges[column + 1];
            uint8_t *cell = &mask[row * cells->columns + column];
            *cell = 1;
            for (int i = 0; i < polygons->n; i++)
                *cell &= !is_inside(&polygons->list[i], x, y);
        }
    }
}
