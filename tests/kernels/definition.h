// The pixel contract evaluated in double, directly from its definition: no tables, no fixed point,
// and no code under test.
#ifndef FRAMED_TESTS_KERNELS_DEFINITION_H
#define FRAMED_TESTS_KERNELS_DEFINITION_H

#include <math.h>

#include "kernels/ops.h"
#include "tests/kernels/picture.h"

struct rgb {
    double r, g, b;
};

struct window { // in source pixels
    int x0, y0, x1, y1;
};

static inline double bounded(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static inline double half_up(double x)
{
    return floor(x + 0.5);
}

static inline void matrix_weights(enum matrix matrix, double *kr, double *kb)
{
    *kr = matrix == MATRIX_BT709 ? 0.2126 : matrix == MATRIX_BT2020 ? 0.2627 : 0.299;
    *kb = matrix == MATRIX_BT709 ? 0.0722 : matrix == MATRIX_BT2020 ? 0.0593 : 0.114;
}

// Interpolates component c at (x, y) in samples of its plane; taps stay within the window.
static inline double bilinear(const struct image *image, int c, double x, double y,
                              struct window window)
{
    const int sx = shared_x(image->format, c), sy = shared_y(image->format, c);
    const double x0 = window.x0 / sx, x1 = (window.x1 - 1) / sx;
    const double y0 = window.y0 / sy, y1 = (window.y1 - 1) / sy;
    const double left = floor(x), top = floor(y), wx = x - left, wy = y - top;
    const int l = (int)bounded(left, x0, x1), r = (int)bounded(left + 1, x0, x1);
    const int t = (int)bounded(top, y0, y1), b = (int)bounded(top + 1, y0, y1);
    const double upper = sample_get(image, c, l, t) * (1 - wx) + sample_get(image, c, r, t) * wx;
    const double lower = sample_get(image, c, l, b) * (1 - wx) + sample_get(image, c, r, b) * wx;
    return upper * (1 - wy) + lower * wy;
}

// How a component is sampled: a filter, and the size of an output pixel's square in samples of its
// plane.
struct footprint {
    enum filter filter;
    double width, height;
};

// Returns the weight of sample k for an output pixel of that width at x, along one axis.
static inline double filter_share(enum filter filter, double x, double width, int k)
{
    if (filter == FILTER_TRIANGLE)
        return fmax(0, 1 - fabs(x - k) / fmax(1, width));
    const double left = fmax(k - 0.5, x - width / 2), right = fmin(k + 0.5, x + width / 2);
    return fmax(0, right - left);
}

// Returns the weighted mean of component c's samples within the window, or the nearest sample if
// all weights are 0.
static inline double weighed(const struct image *image, int c, double x, double y,
                             struct footprint foot, struct window window)
{
    const int sx = shared_x(image->format, c), sy = shared_y(image->format, c);
    const int x0 = window.x0 / sx, x1 = (window.x1 - 1) / sx;
    const int y0 = window.y0 / sy, y1 = (window.y1 - 1) / sy;
    double across = 0, down = 0, sum = 0;
    for (int i = x0; i <= x1; i++)
        across += filter_share(foot.filter, x, foot.width, i);
    for (int i = y0; i <= y1; i++)
        down += filter_share(foot.filter, y, foot.height, i);
    const int near_x = (int)bounded(half_up(x), x0, x1), near_y = (int)bounded(half_up(y), y0, y1);
    for (int j = y0; j <= y1; j++) {
        const double wy =
            down > 0 ? filter_share(foot.filter, y, foot.height, j) / down : j == near_y;
        for (int i = x0; wy > 0 && i <= x1; i++) {
            const double wx =
                across > 0 ? filter_share(foot.filter, x, foot.width, i) / across : i == near_x;
            if (wx > 0)
                sum += wx * wy * sample_get(image, c, i, j);
        }
    }
    return sum;
}

static inline double sampled(const struct image *image, int c, double x, double y,
                             struct footprint foot, struct window window)
{
    if (foot.filter == FILTER_NEAREST)
        return bilinear(image, c, x, y, window); // (x, y) is a pixel's centre
    if (foot.filter == FILTER_BILINEAR)
        return bilinear(image, c, x, y, window);
    return weighed(image, c, x, y, foot, window);
}

static inline double no_chroma(enum pixel_format format)
{
    return is_10bit(format) ? 512 : 128;
}

// Samples a chroma component at luma position (x, y).
static inline double chroma_sampled(const struct image *image, int c, double x, double y,
                                    struct footprint foot, enum siting siting, struct window window)
{
    if (components(image->format) == 1)
        return no_chroma(image->format);
    if (shared_x(image->format, c) == 2)
        x = (x - (siting == SITING_CENTER ? 0.5 : 0)) / 2;
    if (shared_y(image->format, c) == 2)
        y = (y - (siting == SITING_TOPLEFT ? 0 : 0.5)) / 2;
    foot.width /= shared_x(image->format, c);
    foot.height /= shared_y(image->format, c);
    return sampled(image, c, x, y, foot, window);
}

static inline double chroma(const struct image *image, int c, double x, double y,
                            enum siting siting, struct window window)
{
    return chroma_sampled(image, c, x, y, (struct footprint){FILTER_BILINEAR, 1, 1}, siting,
                          window);
}

// Converts YUV to levels; `colour` must be resolved.
static inline struct rgb yuv_levels(const struct image *image, struct colour colour, double luma,
                                    double u, double v)
{
    const bool ten = is_10bit(image->format);
    const bool full = colour.range == RANGE_FULL && colour.matrix != MATRIX_BT601_8BIT;
    const double unit = ten ? 4 : 1, top = ten ? 1023 : 255;
    const double y = full ? luma / top : (luma - 16 * unit) / (219 * unit);
    const double cb = (u - 128 * unit) / (full ? top : 224 * unit);
    const double cr = (v - 128 * unit) / (full ? top : 224 * unit);
    double kr, kb;
    matrix_weights(colour.matrix, &kr, &kb);
    const double red = y + 2 * (1 - kr) * cr, blue = y + 2 * (1 - kb) * cb;
    const double green = (y - kr * red - kb * blue) / (1 - kr - kb);
    return (struct rgb){bounded(255 * red, 0, 255), bounded(255 * green, 0, 255),
                        bounded(255 * blue, 0, 255)};
}

// Samples the picture at (x, y) within the window, before any fill.
static inline struct rgb picture_sampled(const struct image *image, struct colour colour, double x,
                                         double y, struct footprint foot, struct window window)
{
    if (source_is_rgb(image->format))
        return (struct rgb){sampled(image, 0, x, y, foot, window),
                            sampled(image, 1, x, y, foot, window),
                            sampled(image, 2, x, y, foot, window)};
    return yuv_levels(image, colour, sampled(image, 0, x, y, foot, window),
                      chroma_sampled(image, 1, x, y, foot, colour.siting, window),
                      chroma_sampled(image, 2, x, y, foot, colour.siting, window));
}

static inline struct rgb picture_at(const struct image *image, struct colour colour, double x,
                                    double y, struct window window)
{
    return picture_sampled(image, colour, x, y, (struct footprint){FILTER_BILINEAR, 1, 1}, window);
}

static inline double gray_sampled(const struct image *image, struct colour colour, double x,
                                  double y, struct footprint foot, struct window window)
{
    if (!source_is_rgb(image->format)) {
        const double none = no_chroma(image->format);
        return yuv_levels(image, colour, sampled(image, 0, x, y, foot, window), none, none).r;
    }
    const struct rgb p = picture_sampled(image, colour, x, y, foot, window);
    double kr, kb;
    matrix_weights(colour.matrix, &kr, &kb);
    return kr * p.r + (1 - kr - kb) * p.g + kb * p.b;
}

// Returns the share of the footprint at x within pixels lo <= i < hi, along one axis.
static inline double covered(double x, int lo, int hi)
{
    const double left = floor(x), w = x - left;
    return (left >= lo && left < hi ? 1 - w : 0) + (left + 1 >= lo && left + 1 < hi ? w : 0);
}

static inline struct window warp_window(const struct warp_params *params, const struct image *src)
{
    const struct rect crop = params->crop;
    if (crop.width == 0)
        return (struct window){0, 0, src->width, src->height};
    return (struct window){crop.x, crop.y, crop.x + crop.width, crop.y + crop.height};
}

// Maps an output point to its source point by undoing each step of the geometry. Both count from
// the edge of the first pixel, like corners of boxes.
static inline void warp_point(const struct warp_params *params, const struct image *src, double dx,
                              double dy, double *sx, double *sy)
{
    if (params->has_affine) {
        const double *m = params->affine, det = m[0] * m[4] - m[1] * m[3];
        const double x = dx - 0.5 - m[2], y = dy - 0.5 - m[5];
        *sx = (m[4] * x - m[1] * y) / det + 0.5;
        *sy = (m[0] * y - m[3] * x) / det + 0.5;
        return;
    }
    const struct window w = warp_window(params, src);
    const double cw = w.x1 - w.x0, ch = w.y1 - w.y0;
    const double angle = params->rotate * acos(-1) / 180, c = cos(angle), s = sin(angle);
    const int quarters = src->orientation % ORIENTATION_MIRRORED;
    const double across = quarters % 2 ? ch : cw, down = quarters % 2 ? cw : ch;
    const double fx = params->width / (fabs(c) * across + fabs(s) * down);
    const double fy = params->height / (fabs(s) * across + fabs(c) * down);
    double x = dx - params->width / 2.0, y = dy - params->height / 2.0;
    const double both = params->fit == FIT_LETTERBOX ? fmin(fx, fy) : fmax(fx, fy);
    if (params->fit != FIT_NONE) {
        x /= params->fit == FIT_STRETCH ? fx : both;
        y /= params->fit == FIT_STRETCH ? fy : both;
    }
    if (params->flip == FLIP_HORIZONTAL || params->flip == FLIP_BOTH)
        x = -x;
    if (params->flip == FLIP_VERTICAL || params->flip == FLIP_BOTH)
        y = -y;
    double ux = c * x + s * y, uy = c * y - s * x;
    for (int i = 0; i < quarters; i++) {
        const double turned = ux;
        ux = uy;
        uy = -turned;
    }
    if (src->orientation & ORIENTATION_MIRRORED)
        ux = -ux;
    *sx = ux + w.x0 + cw / 2;
    *sy = uy + w.y0 + ch / 2;
}

// Maps output pixel (dx, dy) to the source; integers are centres of source pixels.
static inline void warp_position(const struct warp_params *params, const struct image *src, int dx,
                                 int dy, double *sx, double *sy)
{
    warp_point(params, src, dx + 0.5, dy + 0.5, sx, sy);
    *sx -= 0.5;
    *sy -= 0.5;
}

// Returns the square of output pixel (dx, dy) in the source; used only if the axes do not mix.
static inline struct footprint warp_footprint(const struct warp_params *params,
                                              const struct image *src, int dx, int dy)
{
    double x, y, right_x, right_y, below_x, below_y;
    warp_position(params, src, dx, dy, &x, &y);
    warp_position(params, src, dx + 1, dy, &right_x, &right_y);
    warp_position(params, src, dx, dy + 1, &below_x, &below_y);
    return (struct footprint){params->filter, fabs(right_x - x) + fabs(below_x - x),
                              fabs(right_y - y) + fabs(below_y - y)};
}

// Returns the share of an output pixel of `width` at x within pixels lo <= i < hi.
static inline double square_covered(double x, double width, int lo, int hi)
{
    const double left = fmax(x - width / 2, lo - 0.5), right = fmin(x + width / 2, hi - 0.5);
    return fmax(0, right - left) / width;
}

// True if the definition and positions in 1/65536 pixel may choose different nearest pixels.
static inline bool warp_is_undecided(const struct warp_params *params, const struct image *src,
                                     int dx, int dy)
{
    double x, y;
    warp_position(params, src, dx, dy, &x, &y);
    if (params->filter != FILTER_NEAREST && params->edge != EDGE_REPEAT)
        return false;
    return fabs(x + 0.5 - rint(x + 0.5)) < 1e-4 || fabs(y + 0.5 - rint(y + 0.5)) < 1e-4;
}

// Returns the unrounded level of one channel of the tensor; `colour`: the source's, resolved.
static inline double warp_definition(const struct warp_params *params, const struct image *src,
                                     struct colour colour, int dx, int dy, int channel)
{
    const struct window window = warp_window(params, src);
    const struct footprint foot = warp_footprint(params, src, dx, dy);
    double x, y;
    warp_position(params, src, dx, dy, &x, &y);
    const bool inside = half_up(x) >= window.x0 && half_up(x) < window.x1 &&
                        half_up(y) >= window.y0 && half_up(y) < window.y1;
    if (params->filter == FILTER_NEAREST) {
        x = half_up(x);
        y = half_up(y);
    }
    const double coverage =
        params->filter == FILTER_NEAREST || params->edge == EDGE_REPEAT ? inside
        : params->filter == FILTER_BILINEAR
            ? covered(x, window.x0, window.x1) * covered(y, window.y0, window.y1)
            : square_covered(x, foot.width, window.x0, window.x1) *
                  square_covered(y, foot.height, window.y0, window.y1);
    double level;
    if (params->order == ORDER_GRAY) {
        level = gray_sampled(src, colour, x, y, foot, window);
    } else {
        const struct rgb p = picture_sampled(src, colour, x, y, foot, window);
        level = channel == 1 ? p.g : (channel == 0) == (params->order == ORDER_RGB) ? p.r : p.b;
    }
    return level * coverage + params->fill[channel] * (1 - coverage);
}

#endif
