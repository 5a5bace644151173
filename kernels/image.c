#include "kernels/image.h"

#include <errno.h>
#include <string.h>

const char *pixel_format_name(enum pixel_format format)
{
    return pixel_layout_of(format).name;
}

// Number of chroma samples for `side` pixels along an axis.
static int subsampled(int side, int sub)
{
    return (side + (1 << sub) - 1) >> sub;
}

// A row is as long as the plane's longest component.
size_t plane_row_bytes(enum pixel_format format, int plane, int width)
{
    const struct pixel_layout layout = pixel_layout_of(format);
    size_t most = 0;
    for (int c = 0; c < COMPONENTS_MAX; c++) {
        const struct component k = layout.component[c];
        const size_t samples = subsampled(width, c > 0 ? layout.sub_x : 0);
        if (k.plane == plane && samples * k.step > most)
            most = samples * k.step;
    }
    return most;
}

// A plane with luma has all rows.
int plane_rows(enum pixel_format format, int plane, int height)
{
    return subsampled(height, plane > 0 ? pixel_layout_of(format).sub_y : 0);
}

enum pixel_format pixel_format_read_as(enum pixel_format format)
{
    const struct pixel_layout layout = pixel_layout_of(format);
    for (int i = 0; i < PIXEL_FORMATS; i++) {
        const struct pixel_layout other = pixel_layout_of((enum pixel_format)i);
        if (other.uses & layout.uses & FORMAT_SOURCE && other.bits == layout.bits &&
            other.shift == layout.shift && source_is_rgb(other.format) == source_is_rgb(format) &&
            memcmp(other.component, layout.component, sizeof layout.component) == 0)
            return other.format;
    }
    return format;
}

bool size_is_valid(int width, int height)
{
    return width >= 1 && width <= IMAGE_SIDE_MAX && height >= 1 && height <= IMAGE_SIDE_MAX;
}

int image_planes(const struct image *image)
{
    int n = 0;
    while (n < PLANES_MAX && image->plane[n].stride != 0)
        n++;
    return n;
}

bool image_planes_are_alike(const struct image *image)
{
    const struct plane *plane = image->plane;
    bool alike = true;
    for (int i = 1; i < image_planes(image); i++)
        alike = alike && plane[i].stride == plane[0].stride &&
                plane_rows(image->format, i, image->height) == image->height &&
                plane[i].data - plane[i - 1].data == plane[0].stride * image->height;
    return alike;
}

size_t image_lay_out(struct image *image, void *base)
{
    const uintptr_t start = (uintptr_t)base; // an integer because base may be NULL
    size_t used = 0;
    for (int i = 0; i < PLANES_MAX; i++) {
        image->plane[i] = (struct plane){0};
        if (i >= pixel_format_planes(image->format))
            continue;
        const size_t row = plane_row_bytes(image->format, i, image->width);
        image->plane[i].data = (uint8_t *)(start + used);
        image->plane[i].stride = (ptrdiff_t)row;
        used += row * plane_rows(image->format, i, image->height);
    }
    return used;
}

struct colour colour_resolve(struct colour colour, int height)
{
    if (colour.matrix == MATRIX_UNSPECIFIED)
        colour.matrix = height >= 720 ? MATRIX_BT709 : MATRIX_BT601;
    if (colour.range == RANGE_UNSPECIFIED)
        colour.range = RANGE_LIMITED;
    if (colour.siting == SITING_UNSPECIFIED)
        colour.siting = SITING_LEFT;
    return colour;
}

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
