// Statistics in plain loops, the reference: every other version gives its bytes.
#include <stdlib.h>
#include <string.h>

#include "kernels/fixed.h"
#include "kernels/statistics.h"

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
