#include "kernels/tiles.h"

#include <errno.h>

// Number of tiles along an axis of `length` pixels, with neighbours at most `step` apart.
static int count_along(int length, int size, int step)
{
    return length <= size ? 1 : 1 + (length - size + step - 1) / step;
}

// Start of tile i of n along the axis.
static int start_of(int i, int n, int length, int size)
{
    return n == 1 ? 0 : (int)((long long)i * (length - size) / (n - 1));
}

int tiles_make(struct rect tiles[TILES_MAX], const struct tiling *tiling, struct rect area)
{
    const int size = tiling->size;
    if (size < 1 || size > IMAGE_SIDE_MAX || tiling->overlap < 0 || tiling->overlap > 99)
        return -EINVAL;
    const int step = size * (100 - tiling->overlap) / 100;
    if (step < 1)
        return -EINVAL;
    const int columns = count_along(area.width, size, step);
    const int rows = count_along(area.height, size, step);
    const bool full = tiling->full && columns * rows > 1;
    if (columns * rows + full > TILES_MAX)
        return -E2BIG;
    int n = 0;
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            tiles[n++] = (struct rect){
                .x = area.x + start_of(column, columns, area.width, size),
                .y = area.y + start_of(row, rows, area.height, size),
                .width = area.width < size ? area.width : size,
                .height = area.height < size ? area.height : size,
            };
    if (full)
        tiles[n++] = area;
    return n;
}
