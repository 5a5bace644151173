#include "kernels/image.h"

// What a format is made of. A chroma plane of 4:2:0 has half the columns and rows, rounded up.
struct format {
    const char *name;
    bool rgb, halved; // halved: every plane but the first
    int bits, planes;
    int bytes[PLANES_MAX]; // of one column of the plane
};

static const struct format formats[PIXEL_FORMATS] = {
    [PIXEL_NONE] = {.name = "none"},
    [PIXEL_BGRA] = {"bgra", true, false, 8, 1, {4}},
    [PIXEL_RGBA] = {"rgba", true, false, 8, 1, {4}},
    [PIXEL_BGR24] = {"bgr24", true, false, 8, 1, {3}},
    [PIXEL_RGB24] = {"rgb24", true, false, 8, 1, {3}},
    [PIXEL_GBRP] = {"gbrp", true, false, 8, 3, {1, 1, 1}},
    [PIXEL_NV12] = {"nv12", false, true, 8, 2, {1, 2}},
    [PIXEL_YUV420P] = {"yuv420p", false, true, 8, 3, {1, 1, 1}},
    [PIXEL_P010] = {"p010", false, true, 10, 2, {2, 4}},
    [PIXEL_YUV420P10] = {"yuv420p10", false, true, 10, 3, {2, 2, 2}},
    [PIXEL_YUV444P] = {"yuv444p", false, false, 8, 3, {1, 1, 1}},
    [PIXEL_YUV24] = {"yuv24", false, false, 8, 1, {3}},
    [PIXEL_TENSOR] = {.name = "tensor"},
};

static const struct format *format_of(enum pixel_format format)
{
    return &formats[format < PIXEL_FORMATS ? format : PIXEL_NONE];
}

const char *pixel_format_name(enum pixel_format format)
{
    return format_of(format)->name;
}

bool pixel_format_is_rgb(enum pixel_format format)
{
    return format_of(format)->rgb;
}

int pixel_format_bits(enum pixel_format format)
{
    return format_of(format)->bits;
}

int pixel_format_planes(enum pixel_format format)
{
    return format_of(format)->planes;
}

static int plane_side(enum pixel_format format, int plane, int side)
{
    return plane > 0 && format_of(format)->halved ? (side + 1) / 2 : side;
}

size_t plane_row_bytes(enum pixel_format format, int plane, int width)
{
    return (size_t)plane_side(format, plane, width) * format_of(format)->bytes[plane];
}

int plane_rows(enum pixel_format format, int plane, int height)
{
    return plane_side(format, plane, height);
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
