// Source positions of a warp: placement by a fit, matrices, window and position tables.
#include "kernels/warp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- fits. Each formula is its framework's own, with its rounding: one pixel more or less shifts
// the picture's far edge by up to half a tensor pixel.

// The tensor's size in pixels; the scale of a box of source pixels; and the position of the box's
// middle in the tensor, counted from the tensor's edge.
struct placement {
    int tensor_width, tensor_height;
    double sx, sy, x, y;
};

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

// `width` and `height`: of the box around the turned crop of the source.
static struct placement fit_place(const struct warp_params *params, double width, double height)
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

// Returns the part of the crop (in the picture) that the fit uses: its sides may be 0.
static struct rect fit_crop(enum fit fit, struct rect crop, const struct image *src)
{
    if (fit != FIT_DEEPSTREAM && fit != FIT_DEEPSTREAM_SYMMETRIC)
        return crop;
    const int x = (crop.x + 1) & ~1, y = (crop.y + 1) & ~1;
    const int right = src->width - x, below = src->height - y; // remaining size of the picture
    return (struct rect){x, y, (crop.width < right ? crop.width : right) & ~1,
                         (crop.height < below ? crop.height : below) & ~1};
}

// --- matrices

struct square { // 2x2, row major
    double a, b, c, d;
};

// Quarter turns are exact, so that a turned picture keeps its samples.
static struct square rotation(double degrees)
{
    const double turn = fmod(degrees, 360);
    const double quarters = turn / 90;
    if (quarters == floor(quarters)) {
        static const double sines[] = {0, 1, 0, -1};
        const int i = ((int)quarters + 4) % 4;
        const double sine = sines[i], cosine = sines[(i + 1) % 4];
        return (struct square){cosine, -sine, sine, cosine};
    }
    const double angle = turn * (acos(-1) / 180);
    return (struct square){cos(angle), -sin(angle), sin(angle), cos(angle)};
}

// Scales the rows of a matrix: x by sx, y by sy.
static struct square scaled(struct square m, double sx, double sy)
{
    return (struct square){sx * m.a, sx * m.b, sy * m.c, sy * m.d};
}

static struct square upright(enum orientation orientation)
{
    const struct square turn = rotation(90.0 * (orientation % ORIENTATION_MIRRORED));
    const double x = orientation & ORIENTATION_MIRRORED ? -1 : 1;
    return (struct square){x * turn.a, turn.b, x * turn.c, turn.d};
}

// Applies `first`, then `second`.
static struct square product(struct square second, struct square first)
{
    return (struct square){
        second.a * first.a + second.b * first.c,
        second.a * first.b + second.b * first.d,
        second.c * first.a + second.d * first.c,
        second.c * first.b + second.d * first.d,
    };
}

static int crop_of(const struct warp_params *params, const struct image *src, struct rect *ret)
{
    const struct rect whole = {0, 0, src->width, src->height};
    const struct rect crop = params->crop.width == 0 ? whole : params->crop;
    if (crop.x < 0 || crop.y < 0 || crop.width < 1 || crop.height < 1 ||
        crop.width > src->width - crop.x || crop.height > src->height - crop.y)
        return -EINVAL;
    *ret = fit_crop(params->fit, crop, src);
    return ret->width < 1 || ret->height < 1 ? -EDOM : 0;
}

// Matrix of orientation, rotation and flips.
static struct square turned(const struct warp_params *params, enum orientation orientation)
{
    const double flip_x = params->flip & FLIP_HORIZONTAL ? -1 : 1;
    const double flip_y = params->flip & FLIP_VERTICAL ? -1 : 1;
    return scaled(product(rotation(params->rotate), upright(orientation)), flip_x, flip_y);
}

// Makes the map from the source's crop to the tensor, and the tensor's size.
static int map_init(const struct warp_params *params, const struct image *src, struct rect crop,
                    double m[6], int *width, int *height)
{
    *width = params->width;
    *height = params->height;
    if (params->has_affine) {
        memcpy(m, params->affine, sizeof params->affine);
        return 0;
    }
    if (!isfinite(params->rotate))
        return -EINVAL;
    // Halves convert edge coordinates to the matrices' pixel centres.
    const struct square turn = turned(params, src->orientation);
    const double box_width = fabs(turn.a) * crop.width + fabs(turn.b) * crop.height;
    const double box_height = fabs(turn.c) * crop.width + fabs(turn.d) * crop.height;
    const struct placement place = fit_place(params, box_width, box_height);
    const struct square s = scaled(turn, place.sx, place.sy);
    const double cx = crop.x + crop.width / 2.0, cy = crop.y + crop.height / 2.0;
    m[0] = s.a;
    m[1] = s.b;
    m[2] = -s.a * cx - s.b * cy + place.x + (s.a + s.b) / 2 - 0.5;
    m[3] = s.c;
    m[4] = s.d;
    m[5] = -s.c * cx - s.d * cy + place.y + (s.c + s.d) / 2 - 0.5;
    for (int i = 0; i < 6; i++)
        m[i] += 0.0; // no -0: it would be printed
    *width = place.tensor_width;
    *height = place.tensor_height;
    return size_is_valid(*width, *height) ? 0 : -EINVAL;
}

int warp_src_to_dst(const struct warp_params *params, const struct image *src, double m[6])
{
    struct rect crop;
    int width, height, rc = crop_of(params, src, &crop);
    return rc < 0 ? rc : map_init(params, src, crop, m, &width, &height);
}

int yuv_geometry(struct warp_params *ret, int *width, int *height, const struct yuv_params *params,
                 const struct image *src)
{
    struct rect crop;
    double m[6];
    *ret = params->geometry;
    const bool natural = ret->width == 0;
    if (natural)
        ret->fit = FIT_NONE;
    const int rc = crop_of(ret, src, &crop);
    if (rc < 0 || !isfinite(ret->rotate))
        return rc < 0 ? rc : -EINVAL;
    if (natural) {
        const struct square one = {1, 0, 0, 1};
        const struct square turn = ret->has_affine ? one : turned(ret, src->orientation);
        // Quarter turns are exact. At other angles rounding just above a whole number adds no
        // pixel.
        const double least = 1 - 1e-6;
        ret->width = (int)(fabs(turn.a) * crop.width + fabs(turn.b) * crop.height + least);
        ret->height = (int)(fabs(turn.c) * crop.width + fabs(turn.d) * crop.height + least);
    }
    if (!size_is_valid(ret->width, ret->height))
        return -EINVAL;
    return map_init(ret, src, crop, m, width, height);
}

static int inverse(const double m[6], double ret[6])
{
    const double determinant = m[0] * m[4] - m[1] * m[3];
    const double inv[6] = {
        m[4] / determinant,  -m[1] / determinant, (m[1] * m[5] - m[4] * m[2]) / determinant,
        -m[3] / determinant, m[0] / determinant,  (m[3] * m[2] - m[0] * m[5]) / determinant,
    };
    for (int i = 0; i < 6; i++) {
        if (!isfinite(inv[i]))
            return -EINVAL;
        ret[i] = inv[i] + 0.0; // no -0
    }
    return 0;
}

// Makes a table's entries: 65536 * (slope * point + origin), rounded half up.
struct axis {
    int n;
    const struct warp_points *points;
    double slope, origin;
};

// Returns source pixels.
static double axis_at(const struct axis *axis, int i)
{
    return axis->slope * warp_point_at(axis->points, i) + axis->origin;
}

static double axis_reach(const struct axis *axis)
{
    return fmax(fabs(axis_at(axis, 0)), fabs(axis_at(axis, axis->n - 1)));
}

static void axis_fill(int32_t *table, const struct axis *axis)
{
    for (int i = 0; i < axis->n; i++)
        table[i] = (int32_t)floor(65536 * axis_at(axis, i) + 0.5);
}

static struct warp_row row_at(const struct warp *warp, int32_t s)
{
    const int32_t at = position_sampled(warp, s);
    const struct taps luma = taps_at(position_of(warp->luma, at), warp->y0, warp->y1 - 1);
    const struct taps chroma = chroma_taps(warp->chroma_y, at, warp->y0, warp->y1);
    return (struct warp_row){
        .luma = {(uint16_t)luma.t0, (uint16_t)(luma.w ? luma.t1 : luma.t0)},
        .luma_weight = (uint16_t)luma.w,
        .coverage = (uint16_t)coverage_at(warp, s, warp->y0, warp->y1),
        .chroma = {(uint16_t)chroma.t0, (uint16_t)(chroma.w ? chroma.t1 : chroma.t0)},
        .chroma_weight = (uint16_t)chroma.w,
    };
}

// `first` and `last`: the valid samples.
static struct warp_column column_at(struct taps taps, int first, int last, int step)
{
    const int left = taps.t0 == last && last > first ? last - 1 : taps.t0;
    const int weight = taps.t0 != taps.t1 ? taps.w : taps.t0 > left ? WEIGHT_ONE : 0;
    return (struct warp_column){(uint32_t)(left * step),
                                (uint32_t)(weight << 16 | (WEIGHT_ONE - weight))};
}

static void rows_and_columns_fill(struct warp *warp)
{
    const int sub = position_sub(warp->chroma_x), last = warp->x1 - 1;
    const int luma_step = component_of(warp->source, 0).step;
    const int chroma_step = component_of(warp->source, 1).step;
    for (int y = 0; y < warp->height; y++)
        warp->rows[y] = row_at(warp, warp->rowy[y]);
    for (int x = 0; x < warp_padded_width(warp->width); x++) {
        const int32_t s = warp->colx[x < warp->width ? x : warp->width - 1];
        const int32_t at = position_sampled(warp, s), p = position_of(warp->luma, at);
        warp->luma_columns[x] = column_at(taps_at(p, warp->x0, last), warp->x0, last, luma_step);
        warp->chroma_columns[x] = column_at(chroma_taps(warp->chroma_x, at, warp->x0, warp->x1),
                                            warp->x0 >> sub, last >> sub, chroma_step);
        warp->coverage_columns[x] = (uint16_t)coverage_at(warp, s, warp->x0, warp->x1);
    }
}

// Bytes of the position tables, up to the next table, which is 16-byte aligned.
static size_t positions_bytes(const struct warp *warp)
{
    const size_t bytes = 2 * ((size_t)warp->width + warp->height) * sizeof(*warp->colx);
    return (bytes + 15) & ~(size_t)15;
}

static size_t rows_and_columns_bytes(const struct warp *warp)
{
    const size_t column = 2 * sizeof(struct warp_column) + sizeof(uint16_t);
    return warp->height * sizeof(struct warp_row) + warp_padded_width(warp->width) * column;
}

size_t warp_tables_bytes(const struct warp *warp)
{
    return positions_bytes(warp) + (warp->rows ? rows_and_columns_bytes(warp) : 0);
}

// `d`: dst_to_src.
static int tables_init(struct warp *warp, const double d[6])
{
    const int w = warp->width, h = warp->height;
    const struct warp_points *x = &warp->across, *y = &warp->down;
    const struct axis colx = {w, x, d[0], d[2]}, rowx = {h, y, d[1], 0};
    const struct axis coly = {w, x, d[3], 0}, rowy = {h, y, d[4], d[5]};
    const double reach =
        fmax(axis_reach(&colx) + axis_reach(&rowx), axis_reach(&coly) + axis_reach(&rowy));
    if (!(reach < WARP_REACH_MAX)) // or NaN
        return -ERANGE;
    warp->colx = malloc(positions_bytes(warp) + rows_and_columns_bytes(warp));
    if (!warp->colx)
        return -ENOMEM;
    warp->coly = warp->colx + w;
    warp->rowx = warp->coly + w;
    warp->rowy = warp->rowx + h;
    axis_fill(warp->colx, &colx);
    axis_fill(warp->coly, &coly);
    axis_fill(warp->rowx, &rowx);
    axis_fill(warp->rowy, &rowy);
    // These are monotone from 0 or almost 0: the axes mix if an end is not 0.
    if (filter_weighs(warp->filter) || warp->rowx[0] != 0 || warp->rowx[h - 1] != 0 ||
        warp->coly[0] != 0 || warp->coly[w - 1] != 0)
        return 0;
    warp->rows = (struct warp_row *)((uint8_t *)warp->colx + positions_bytes(warp));
    warp->luma_columns = (struct warp_column *)(warp->rows + h);
    warp->chroma_columns = warp->luma_columns + warp_padded_width(w);
    warp->coverage_columns = (uint16_t *)(warp->chroma_columns + warp_padded_width(w));
    rows_and_columns_fill(warp);
    return 0;
}

int geometry_init(struct warp *warp, double src_to_dst[6], double dst_to_src[6],
                  const struct warp_params *params, const struct image *src,
                  const struct warp_points points[2])
{
    struct rect crop;
    int width, height;
    const int rc = crop_of(params, src, &crop);
    if (rc < 0)
        return rc;
    if (map_init(params, src, crop, src_to_dst, &width, &height) < 0 ||
        inverse(src_to_dst, dst_to_src) < 0)
        return -EINVAL;
    warp->across = points ? points[0] : (struct warp_points){1, width - 1, 0};
    warp->down = points ? points[1] : (struct warp_points){1, height - 1, 0};
    warp->width = (width - 1) / warp->across.step + 1;
    warp->height = (height - 1) / warp->down.step + 1;
    warp->x0 = crop.x;
    warp->y0 = crop.y;
    warp->x1 = crop.x + crop.width;
    warp->y1 = crop.y + crop.height;
    return tables_init(warp, dst_to_src);
}

struct band with_chroma_rows(struct band rows, struct position at, int32_t first, int32_t last,
                             int lo, int hi)
{
    const int c0 = chroma_taps(at, first, lo, hi).t0, c1 = chroma_taps(at, last, lo, hi).t1;
    const int sub = position_sub(at);
    const int y0 = clamp_to(c0 << sub, lo, hi - 1), y1 = clamp_to((c1 + 1) << sub, lo + 1, hi);
    return (struct band){y0 < rows.y0 ? y0 : rows.y0, y1 > rows.y1 ? y1 : rows.y1};
}

struct band warp_source_rows(const struct warp *warp, struct band out)
{
    if (filter_weighs(warp->filter))
        return filter_source_rows(warp, out);
    // Both tables are monotone: the extremes are at the corners.
    const int32_t c0 = warp->coly[0], c1 = warp->coly[warp->width - 1];
    const int32_t r0 = warp->rowy[out.y0], r1 = warp->rowy[out.y1 - 1];
    const int32_t first = position_sampled(warp, (c0 < c1 ? c0 : c1) + (r0 < r1 ? r0 : r1));
    const int32_t last = position_sampled(warp, (c0 < c1 ? c1 : c0) + (r0 < r1 ? r1 : r0));
    const int tap0 = position_of(warp->luma, first) >> WEIGHT_BITS;
    const int tap1 = (position_of(warp->luma, last) >> WEIGHT_BITS) + 1;
    if (tap1 < warp->y0 || tap0 >= warp->y1)
        return (struct band){0, 0};
    const struct band rows = {clamp_to(tap0, warp->y0, warp->y1 - 1),
                              clamp_to(tap1, warp->y0, warp->y1 - 1) + 1};
    if (!source_has_chroma(warp->source) || gray_is_direct(warp))
        return rows;
    return with_chroma_rows(rows, warp->chroma_y, first, last, warp->y0, warp->y1);
}
