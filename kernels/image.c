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
