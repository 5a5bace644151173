#include "kernels/image.h"

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

const char *pixel_format_name(enum pixel_format format)
{
    return pixel_layout_of(format).name;
}

// How many samples of chroma a row or column of `side` pixels has.
static int subsampled(int side, int sub)
{
    return (side + (1 << sub) - 1) >> sub;
}

// The samples of a plane's widest component.
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

// Planes that have luma in them have all of its rows.
int plane_rows(enum pixel_format format, int plane, int height)
{
    return subsampled(height, plane > 0 ? pixel_layout_of(format).sub_y : 0);
}

size_t image_lay_out(struct image *image, void *base)
{
    const uintptr_t start = (uintptr_t)base; // an integer, since base may be NULL
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
