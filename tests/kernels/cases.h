// Random parameters of ops. Each statement takes one random number: compilers differ in the order
// within a statement, and a seed must give the same cases everywhere.
#ifndef FRAMED_TESTS_KERNELS_CASES_H
#define FRAMED_TESTS_KERNELS_CASES_H

#include <math.h>
#include <stdio.h>

#include "kernels/ops.h"
#include "tests/kernels/picture.h"

enum geometry {
    GEOMETRY_LETTERBOX,
    GEOMETRY_STRETCH,
    GEOMETRY_CROP,
    GEOMETRY_NONE,
    GEOMETRY_AFFINE,
    GEOMETRY_AFFINE_WINDOW,
    GEOMETRY_ROTATE,
    GEOMETRY_QUARTERS,
    GEOMETRY_FLIP,
    GEOMETRY_WINDOW,
    GEOMETRY_ALL, // any combination of fit, rotation, flip and window
    GEOMETRIES
};

static inline double random_real(struct random *random, double lo, double hi)
{
    return lo + (hi - lo) * ((double)(random_next(random) >> 11) / 0x1p53);
}

static inline struct rect rect_case(struct random *random, int width, int height)
{
    struct rect r;
    r.width = random_in(random, 1, width);
    r.height = random_in(random, 1, height);
    r.x = random_in(random, 0, width - r.width);
    r.y = random_in(random, 0, height - r.height);
    return r;
}

// Makes a rotated, scaled and skewed map that is invertible and moves the source's centre into the
// output.
static inline void affine_case(struct random *random, struct warp_params *p, int width, int height)
{
    const double angle = random_real(random, -4, 4), scale = random_real(random, 0.3, 3);
    const double skew = random_real(random, -0.5, 0.5), mirror = random_in(random, 0, 1) ? 1 : -1;
    double *m = p->affine;
    p->has_affine = true;
    m[0] = scale * cos(angle) * mirror;
    m[1] = scale * (skew - sin(angle));
    m[3] = scale * sin(angle) * mirror;
    m[4] = scale * (cos(angle) + 0.3 * skew);
    m[2] = random_real(random, 0, p->width) - m[0] * width / 2 - m[1] * height / 2;
    m[5] = random_real(random, 0, p->height) - m[3] * width / 2 - m[4] * height / 2;
}

// Returns parameters for u8 levels, rgb and nchw; the caller may change these.
static inline struct warp_params warp_case(struct random *random, enum geometry geometry,
                                           const struct image *src, int side_max)
{
    struct warp_params p = {.scale = 1, .std = {1, 1, 1}};
    p.width = random_in(random, 1, side_max);
    p.height = random_in(random, 1, side_max);
    for (int c = 0; c < 3; c++)
        p.fill[c] = (uint8_t)random_next(random);
    const bool all = geometry == GEOMETRY_ALL;
    if (geometry <= GEOMETRY_NONE)
        p.fit = (enum fit)geometry;
    if (geometry == GEOMETRY_AFFINE || geometry == GEOMETRY_AFFINE_WINDOW)
        affine_case(random, &p, src->width, src->height);
    if (all || geometry > GEOMETRY_AFFINE_WINDOW)
        p.fit = (enum fit)random_in(random, FIT_LETTERBOX, FIT_NONE);
    if (all || geometry == GEOMETRY_ROTATE)
        p.rotate = random_real(random, -400, 400);
    if (geometry == GEOMETRY_QUARTERS)
        p.rotate = 90 * random_in(random, -5, 5);
    if (all || geometry == GEOMETRY_FLIP)
        p.flip = (enum flip)random_in(random, FLIP_NONE, FLIP_BOTH);
    if (all || geometry == GEOMETRY_WINDOW || geometry == GEOMETRY_AFFINE_WINDOW)
        p.crop = rect_case(random, src->width, src->height);
    return p;
}

// Returns parameters with a filter, which requires axes that do not mix, and such a geometry:
// quarter turns, flips and affine maps of two numbers per axis among them.
static inline struct warp_params filter_case(struct random *random, const struct image *src,
                                             int side_max)
{
    static const enum geometry straight[] = {
        GEOMETRY_LETTERBOX, GEOMETRY_STRETCH,  GEOMETRY_CROP, GEOMETRY_NONE,
        GEOMETRY_AFFINE,    GEOMETRY_QUARTERS, GEOMETRY_FLIP, GEOMETRY_WINDOW};
    const enum geometry geometry = straight[random_in(random, 0, 7)];
    struct warp_params p = warp_case(random, geometry, src, side_max);
    p.filter = (enum filter)random_in(random, FILTER_AREA, FILTER_TRIANGLE);
    if (geometry == GEOMETRY_AFFINE) {
        const bool turned = random_in(random, 0, 1);
        const double across = random_real(random, 0.1, 3) * (random_in(random, 0, 1) ? 1 : -1);
        const double down = random_real(random, 0.1, 3) * (random_in(random, 0, 1) ? 1 : -1);
        double *m = p.affine;
        m[turned ? 1 : 0] = across;
        m[turned ? 3 : 4] = down;
        m[turned ? 0 : 1] = m[turned ? 4 : 3] = 0;
        m[2] = random_real(random, 0, p.width) - (m[0] * src->width + m[1] * src->height) / 2;
        m[5] = random_real(random, 0, p.height) - (m[3] * src->width + m[4] * src->height) / 2;
    }
    return p;
}

// Sets options that combine with any fit, filter and geometry: how edges are made, and pixels of
// pure fill; sometimes also a filter and a fit of whole pixels.
static inline void edges_case(struct random *random, struct warp_params *p)
{
    p->edge = (enum edge)random_in(random, EDGE_BLEND, EDGE_REPEAT);
    p->fill_mean = random_in(random, 0, 3) == 0;
    if (p->filter == FILTER_BILINEAR && random_in(random, 0, 3) == 0)
        p->filter = FILTER_NEAREST;
    if (random_in(random, 0, 3) == 0)
        p->fit = (enum fit)random_in(random, FIT_NONE + 1, FITS - 1);
    p->shrink_only = random_in(random, 0, 1);
    p->stride = random_in(random, 0, 40);
}

// Sets a random element type, order, layout and normalisation.
static inline void tensor_case(struct random *random, struct warp_params *p)
{
    p->dtype = (enum dtype)random_in(random, DTYPE_U8, DTYPE_F32);
    p->layout = (enum layout)random_in(random, LAYOUT_NCHW, LAYOUT_NHWC);
    p->order = (enum order)random_in(random, ORDER_RGB, ORDER_GRAY);
    p->scale = random_in(random, 0, 1) ? 1 / 255.0 : random_real(random, -2, 2);
    for (int c = 0; c < 3; c++) {
        p->mean[c] = random_real(random, -100, 100);
        p->std[c] = random_real(random, 0.2, 2);
    }
}

// Returns a LUT of few points owned by the caller, with linear axes or not; NULL in 3 of 4 cases.
static inline struct lut *lut_case(struct random *random)
{
    enum { POINTS = 9 };
    float nodes[3 * POINTS * POINTS * POINTS];
    struct lut_params p = {.nodes = nodes, .last = {1, 1, 1}};
    struct lut *lut = NULL;
    if (random_in(random, 0, 3) != 0)
        return NULL;
    p.points = random_in(random, LUT_POINTS_MIN, POINTS);
    p.interpolation = (enum lut_interpolation)random_in(random, 0, 1);
    if (random_in(random, 0, 2) == 0)
        p.first[random_in(random, 0, 2)] = 0.1;
    for (int i = 0; i < 3 * p.points * p.points * p.points; i++)
        nodes[i] = (float)random_real(random, -0.1, 1.1);
    return lut_make(&lut, &p) == 0 ? lut : NULL;
}

static inline struct colour colour_case(struct random *random)
{
    struct colour colour;
    colour.matrix = (enum matrix)random_in(random, MATRIX_BT601, MATRIX_BT2020);
    colour.range = (enum range)random_in(random, RANGE_LIMITED, RANGE_FULL);
    colour.siting = (enum siting)random_in(random, SITING_LEFT, SITING_TOPLEFT);
    return colour;
}

static inline struct yuv_params yuv_case(struct random *random)
{
    static const enum pixel_format formats[] = {PIXEL_NV12, PIXEL_YUV420P, PIXEL_YUV444P,
                                                PIXEL_YUV24};
    struct yuv_params p = {.format = formats[random_in(random, 0, 3)]};
    p.colour.matrix = (enum matrix)random_in(random, MATRIX_UNSPECIFIED, MATRIX_BT601_8BIT);
    if (p.colour.matrix != MATRIX_BT601_8BIT)
        p.colour.range = (enum range)random_in(random, RANGE_UNSPECIFIED, RANGE_FULL);
    return p;
}

// Sets a geometry with any fill and filter; size 0 requests the natural size. If samples keep their
// values, any siting too.
static inline void yuv_geometry_case(struct random *random, struct yuv_params *p,
                                     const struct image *src, int side_max)
{
    const bool filtered = random_in(random, 0, 2) == 0;
    const enum geometry geometry = (enum geometry)random_in(random, 0, GEOMETRIES - 1);
    p->resized = true;
    p->geometry =
        filtered ? filter_case(random, src, side_max) : warp_case(random, geometry, src, side_max);
    if (random_in(random, 0, 7) == 0)
        p->geometry.width = p->geometry.height = 0;
    if (!source_is_rgb(src->format) && random_in(random, 0, 2) != 0)
        p->colour = (struct colour){.siting = (enum siting)random_in(random, 0, SITING_TOPLEFT)};
}

// Writes the parameters for a failed check's message into `text` and returns it.
static inline const char *warp_case_text(char text[400], const struct warp_params *p,
                                         const struct image *src)
{
    snprintf(text, 400,
             "%s %dx%d colour %d/%d/%d orientation %d -> %dx%d filter %d edge %d mean %d fit %d "
             "(%d, %d) rotate %.17g flip "
             "%d crop "
             "%d,%d %dx%d "
             "affine %d: %g %g %g %g %g %g order %d layout %d dtype %d",
             pixel_format_name(src->format), src->width, src->height, src->colour.matrix,
             src->colour.range, src->colour.siting, src->orientation, p->width, p->height,
             p->filter, p->edge, p->fill_mean, p->fit, p->shrink_only, p->stride, p->rotate,
             p->flip, p->crop.x, p->crop.y, p->crop.width, p->crop.height, p->has_affine,
             p->affine[0], p->affine[1], p->affine[2], p->affine[3], p->affine[4], p->affine[5],
             p->order, p->layout, p->dtype);
    return text;
}

static inline const char *yuv_case_text(char text[400], const struct yuv_params *p,
                                        const struct image *src)
{
    char geometry[400];
    int n = snprintf(text, 400, "%s %dx%d colour %d/%d/%d -> %s colour %d/%d/%d",
                     pixel_format_name(src->format), src->width, src->height, src->colour.matrix,
                     src->colour.range, src->colour.siting, pixel_format_name(p->format),
                     p->colour.matrix, p->colour.range, p->colour.siting);
    if (p->resized)
        snprintf(text + n, 400 - n, ": %.300s", warp_case_text(geometry, &p->geometry, src));
    return text;
}

#endif
