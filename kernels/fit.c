// Each formula is its framework's own, with its rounding: one pixel more or less shifts the
// picture's far edge by up to half a tensor pixel.
#include "kernels/fit.h"

#include <math.h>

// The tensor has the user's size; the picture fills the pixels of `at`.
static struct placement on_pixels(const struct warp_params *params, struct rect at, double width,
                                  double height)
{
    return (struct placement){
        params->width,      params->height,        at.width / width,
        at.height / height, at.x + at.width / 2.0, at.y + at.height / 2.0,
    };
}

static int side(double pixels)
{
    return (int)fmax(1, pixels);
}

static int stride_of(const struct warp_params *params)
{
    return params->stride > 1 ? params->stride : 1;
}

// rint() rounds halves to even, like Python's round().
static struct placement ultralytics(const struct warp_params *params, double width, double height,
                                    double s)
{
    struct warp_params tensor = *params;
    struct rect at = {0, 0, side(rint(width * s)), side(rint(height * s))};
    if (params->fit == FIT_RECT) {
        tensor.width = at.width + (params->width - at.width) % stride_of(params);
        tensor.height = at.height + (params->height - at.height) % stride_of(params);
    }
    at.x = (int)rint((tensor.width - at.width) / 2.0 - 0.1);
    at.y = (int)rint((tensor.height - at.height) / 2.0 - 0.1);
    return on_pixels(&tensor, at, width, height);
}

// PyTorch divides a number by a float by multiplying it with the float's reciprocal.
static struct placement torchvision(const struct warp_params *params, double width, double height)
{
    const float least = (float)fmin(params->width, params->height);
    const float most = (float)fmax(params->width, params->height);
    const double s =
        fminf(1 / (float)fmin(width, height) * least, 1 / (float)fmax(width, height) * most);
    const int stride = stride_of(params);
    const struct rect at = {0, 0, side(floor(width * s)), side(floor(height * s))};
    struct placement place = on_pixels(params, at, width, height);
    place.tensor_width = (at.width + stride - 1) / stride * stride;
    place.tensor_height = (at.height + stride - 1) / stride * stride;
    return place;
}

static struct placement deepstream(const struct warp_params *params, double width, double height)
{
    const double across = params->height * width / height, down = params->width * height / width;
    struct rect at = {0, 0, params->width, side(floor(down))};
    if (down > params->height)
        at = (struct rect){0, 0, side(floor(across)), params->height};
    if (params->fit == FIT_DEEPSTREAM_SYMMETRIC) {
        at.x = (params->width - at.width) / 2;
        at.y = (params->height - at.height) / 2;
    }
    return on_pixels(params, at, width, height);
}

// The scaled picture's size is rounded to whole pixels; the scale stays the float.
static struct placement opencv_crop(const struct warp_params *params, double width, double height)
{
    const double s =
        fmaxf((float)params->width / (float)width, (float)params->height / (float)height);
    const double left = floor((rint(width * s) - params->width) / 2);
    const double top = floor((rint(height * s) - params->height) / 2);
    return (struct placement){params->width,        params->height,      s, s,
                              width * s / 2 - left, height * s / 2 - top};
}

struct placement fit_place(const struct warp_params *params, double width, double height)
{
    const double sx = params->width / width, sy = params->height / height;
    const double s = params->shrink_only ? fmin(fmin(sx, sy), 1) : fmin(sx, sy);
    struct placement place = {params->width,       params->height,      s, s,
                              params->width / 2.0, params->height / 2.0};
    switch (params->fit) {
    case FIT_STRETCH:
        place.sx = sx;
        place.sy = sy;
        return place;
    case FIT_CROP:
        place.sx = place.sy = fmax(sx, sy);
        return place;
    case FIT_NONE:
        place.sx = place.sy = 1;
        return place;
    case FIT_ULTRALYTICS:
    case FIT_RECT:
        return ultralytics(params, width, height, s);
    case FIT_YOLOX:
        return on_pixels(params,
                         (struct rect){0, 0, side(floor(width * s)), side(floor(height * s))},
                         width, height);
    case FIT_MMDET:
        return on_pixels(
            params,
            (struct rect){0, 0, side(floor(width * s + 0.5)), side(floor(height * s + 0.5))}, width,
            height);
    case FIT_TORCHVISION:
        return torchvision(params, width, height);
    case FIT_DEEPSTREAM:
    case FIT_DEEPSTREAM_SYMMETRIC:
        return deepstream(params, width, height);
    case FIT_OPENCV_CROP:
        return opencv_crop(params, width, height);
    default:
        return place;
    }
}

struct rect fit_crop(enum fit fit, struct rect crop, const struct image *src)
{
    if (fit != FIT_DEEPSTREAM && fit != FIT_DEEPSTREAM_SYMMETRIC)
        return crop;
    const int x = (crop.x + 1) & ~1, y = (crop.y + 1) & ~1;
    const int right = src->width - x, below = src->height - y; // remaining size of the picture
    return (struct rect){x, y, (crop.width < right ? crop.width : right) & ~1,
                         (crop.height < below ? crop.height : below) & ~1};
}
