#include "kernels/statistics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/fixed.h"

static void edges_init(int32_t *edges, int cells, int side)
{
    for (int i = 0; i <= cells; i++)
        edges[i] = (int32_t)((int64_t)i * side / cells);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

int statistics_init(struct statistics *s, const struct statistics_params *params,
                    const struct image *src)
{
    const int columns = params->columns ? params->columns : STATISTICS_COLUMNS;
    const int rows = params->rows ? params->rows : STATISTICS_ROWS;
    if (columns < 1 || columns > STATISTICS_GRID_MAX || rows < 1 || rows > STATISTICS_GRID_MAX ||
        params->black >= params->white || !size_is_valid(src->width, src->height) ||
        !(pixel_layout_of(src->format).uses & FORMAT_SOURCE))
        return -EINVAL;
    *s = (struct statistics){.params = *params,
                             .format = src->format,
                             .width = src->width,
                             .height = src->height,
                             .grid_columns = least(columns, src->width),
                             .grid_rows = least(rows, src->height)};
    const int across = src->width / s->grid_columns / 2, down = src->height / s->grid_rows / 2;
    s->split = least(STATISTICS_SPLIT, least(across, down));
    s->split = s->split < 1 ? 1 : s->split;
    s->columns = s->grid_columns * s->split;
    s->rows = s->grid_rows * s->split;
    edges_init(s->column_edges, s->columns, s->width);
    edges_init(s->row_edges, s->rows, s->height);
    colour_gray_weights(colour_resolve(src->colour, src->height).matrix, s->gray);
    return 0;
}

void statistics_grid(const struct statistics *s, const uint32_t *cells, uint8_t *means)
{
    for (int row = 0; row < s->grid_rows; row++)
        for (int column = 0; column < s->grid_columns; column++)
            *means++ = statistics_mean(s, cells, row, column);
}

// --- the reference: every other version gives its bytes

// Reflects i, from -1 to `side`, into the side.
static int reflected(int i, int side)
{
    if (i < 0)
        return side > 1 ? 1 : 0;
    return i < side ? i : side > 1 ? side - 2 : 0;
}

void statistics_reference(const struct statistics *s, const struct image *src,
                          struct luma_statistics *ret, uint32_t *cells)
{
#define LUMA(x, y) luma_at(src, s->format, s->gray, reflected(x, s->width), reflected(y, s->height))
    *ret = (struct luma_statistics){.pixels = (uint32_t)s->width * (uint32_t)s->height, .min = 255};
    memset(cells, 0, (size_t)s->columns * (size_t)s->rows * sizeof *cells);
    int row = 0;
    for (int y = 0; y < s->height; y++) {
        row += y == s->row_edges[row + 1];
        int column = 0;
        for (int x = 0; x < s->width; x++) {
            column += x == s->column_edges[column + 1];
            const int level = LUMA(x, y);
            ret->sum += (uint64_t)level;
            ret->squares += (uint64_t)(level * level);
            ret->min = (uint8_t)(level < ret->min ? level : ret->min);
            ret->max = (uint8_t)(level > ret->max ? level : ret->max);
            cells[row * s->columns + column] += (uint32_t)level;
            if (!s->params.all)
                continue;
            ret->histogram[level >> 2]++;
            ret->black += level <= s->params.black;
            ret->white += level >= s->params.white;
            ret->laplacian += (uint64_t)abs(4 * level - LUMA(x - 1, y) - LUMA(x + 1, y) -
                                            LUMA(x, y - 1) - LUMA(x, y + 1));
        }
    }
#undef LUMA
}
