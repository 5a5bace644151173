// The warp without its op: the op `yuv` uses it for resized pictures. Its reference and its pixels
// are, with fixed.h, the specification: faster versions give the same bytes.
#ifndef FRAMED_KERNELS_WARP_H
#define FRAMED_KERNELS_WARP_H

#include "kernels/fixed.h"
#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// Like op_fn, for a warp.
typedef void warp_fn(const struct image *dst, const struct image *src, const struct warp *,
                     struct band band, bool filled);

// Makes the warp and its matrices. `points`: of the result's picture along x and y; NULL: all.
// Errors as op_init; on success warp_free frees it.
int warp_make(struct warp *, double src_to_dst[6], double dst_to_src[6],
              const struct warp_params *params, const struct image *src,
              const struct warp_points points[2]);
void warp_free(struct warp *); // accepts a zeroed one

warp_fn warp_reference;

size_t element_bytes(enum dtype);

// --- source positions: matrices, window and position tables

// Makes the matrices, and a warp's size, points, window and tables. `points`: of the result's
// picture along x and y; NULL: all. Errors as op_init. On success the tables are one allocation at
// warp->colx, which the caller frees.
int geometry_init(struct warp *warp, double src_to_dst[6], double dst_to_src[6],
                  const struct warp_params *params, const struct image *src,
                  const struct warp_points points[2]);

// Size of that allocation. Its tables are in the order of struct warp.
size_t warp_tables_bytes(const struct warp *warp);

struct band warp_source_rows(const struct warp *, struct band out); // as op_source_rows

// Adds to the luma rows `rows` of the window [lo, hi) those whose chroma (at `at`) is read between
// source positions `first` and `last`.
struct band with_chroma_rows(struct band rows, struct position at, int32_t first, int32_t last,
                             int lo, int hi);

// --- tables of a filter that weights all samples under an output pixel: area, triangle

// Makes warp->filtered; all of `warp` except its tables must be set. `d`: dst_to_src. Returns 0;
// -EINVAL if the axes mix; -ENOMEM. On error there is nothing to finish.
int filter_init(struct warp *warp, const double d[6]);
// Bytes sufficient for the tables of any other window at no larger a scale: an output pixel may
// cover a few more samples there.
size_t filter_tables_room(const struct warp *);
void filter_finish(struct warp *warp); // accepts a warp without such tables

// Returns the source rows (luma) that rows [out.y0, out.y1) of the result read.
struct band filter_source_rows(const struct warp *warp, struct band out);

// --- one pixel, from its position to its levels, for C and CUDA

// True if samples of a YUV source keep their values.
static inline FRAMED_HD bool samples_are_kept(const struct warp *warp)
{
    return warp->order == ORDER_YUV || warp->order == ORDER_UV;
}

// True if gray is made from the samples, not from R, G and B after a LUT.
static inline FRAMED_HD bool gray_is_direct(const struct warp *warp)
{
    return warp->order == ORDER_GRAY && !warp->lut;
}

// The components read: [first, end).
static inline FRAMED_HD int components_first(const struct warp *warp)
{
    return warp->order == ORDER_UV ? 1 : 0;
}

static inline FRAMED_HD int components_end(const struct warp *warp, enum pixel_format format)
{
    const bool luma = gray_is_direct(warp) || !source_has_chroma(format);
    return !source_is_rgb(format) && luma ? 1 : 3;
}

// Applies the warp's LUT to a pixel; returns R, G and B, or gray.
static inline FRAMED_HD struct rgb6 looked_up6(const struct warp *warp, struct rgb6 q)
{
    uint8_t level[3] = {(uint8_t)level_of(q.r), (uint8_t)level_of(q.g), (uint8_t)level_of(q.b)};
    lut_pixel(warp->lut, level);
    q.r = level[0] * 64 + LEVEL6_HALF;
    q.g = level[1] * 64 + LEVEL6_HALF;
    q.b = level[2] * 64 + LEVEL6_HALF;
    if (warp->order == ORDER_GRAY)
        q.r = level_of(gray6(q, warp->gray)) * 64 + LEVEL6_HALF;
    return q;
}

// Levels of a pixel in the tensor's channel order, where `coverage` of it is picture. `sample`: R,
// G and B, or Y, U and V, in 7 fraction bits centred on 128; 0 if not read.
static inline FRAMED_HD void levels_of_samples(const struct warp *warp, enum pixel_format format,
                                               const int sample[3], int coverage, uint8_t level[3])
{
    const bool gray = gray_is_direct(warp);
    struct rgb6 q;
    if (source_is_rgb(format) || samples_are_kept(warp)) {
        const int first = components_first(warp);
        q.r = channel6(sample[first]);
        q.g = channel6(sample[first + 1]);
        q.b = channel6(sample[2]);
        if (gray)
            q.r = gray6(q, warp->gray);
    } else if (gray || !source_has_chroma(format)) {
        q.r = q.g = q.b = luma6(&warp->rgb, sample[0]);
    } else {
        q = yuv_to_rgb6(&warp->rgb, sample[0], sample[1], sample[2]);
    }
    if (warp->lut)
        q = looked_up6(warp, q);

    // The rest, outside the window, is fill.
    const bool bgr = warp->order == ORDER_BGR;
    const int q6[3] = {bgr ? q.b : q.r, q.g, bgr ? q.r : q.b};
    for (int i = 0; i < 3; i++)
        level[i] =
            (uint8_t)(coverage == WEIGHT_ONE ? level_of(q6[i])
                                             : level_blended(q6[i], warp->fill[i], coverage));
}

// Position at which source position s is sampled.
static inline FRAMED_HD int32_t position_sampled(const struct warp *warp, int32_t s)
{
    return warp->filter == FILTER_NEAREST ? position_snapped(s) : s;
}

// Share of picture (pixels lo <= i < hi) at source position s along one axis: 0 to WEIGHT_ONE.
static inline FRAMED_HD int coverage_at(const struct warp *warp, int32_t s, int lo, int hi)
{
    const bool whole = warp->filter == FILTER_NEAREST || warp->edge == EDGE_REPEAT;
    return coverage_axis(position_of(warp->luma, whole ? position_snapped(s) : s), lo, hi);
}

// Levels of the output pixel at source position (sx, sy) in 1/65536 pixel, in the tensor's channel
// order; for gray only level[0] is valid. `format` is warp->source. Returns false, without levels,
// if the pixel shows nothing of the picture.
static inline FRAMED_HD bool warp_levels(const struct image *src, const struct warp *warp,
                                         enum pixel_format format, int32_t sx, int32_t sy,
                                         uint8_t level[3])
{
    const int across = coverage_at(warp, sx, warp->x0, warp->x1);
    const int down = coverage_at(warp, sy, warp->y0, warp->y1);
    if (across == 0 || down == 0)
        return false;

    // Samples outside the window are replaced by those at its edge.
    sx = position_sampled(warp, sx);
    sy = position_sampled(warp, sy);
    const struct taps x = taps_at(position_of(warp->luma, sx), warp->x0, warp->x1 - 1);
    const struct taps y = taps_at(position_of(warp->luma, sy), warp->y0, warp->y1 - 1);
    int sample[3] = {0};
    if (components_first(warp) == 0)
        sample[0] = sample_bilinear(src, format, 0, x, y);
    if (source_is_rgb(format)) {
        sample[1] = sample_bilinear(src, format, 1, x, y);
        sample[2] = sample_bilinear(src, format, 2, x, y);
    } else if (components_end(warp, format) == 3) {
        const struct taps cx = chroma_taps(warp->chroma_x, sx, warp->x0, warp->x1);
        const struct taps cy = chroma_taps(warp->chroma_y, sy, warp->y0, warp->y1);
        sample[1] = sample_bilinear(src, format, 1, cx, cy);
        sample[2] = sample_bilinear(src, format, 2, cx, cy);
    }
    levels_of_samples(warp, format, sample, coverage_of(across, down), level);
    return true;
}

// --- filters that weight samples along each axis

// Weighted sum of the samples in column x of component c's plane, for entry iy of the axis y.
static inline FRAMED_HD int column_filtered(const struct image *src, enum pixel_format format,
                                            int c, int x, const struct filter_axis *y, int iy)
{
    const struct component k = component_of(format, c);
    const struct filter_span rows = y->spans[iy];
    const int16_t *weights = y->weights + (ptrdiff_t)iy * y->stride;
    const ptrdiff_t stride = src->plane[k.plane].stride;
    const uint8_t *at = component_row(src, k, rows.first) + x * k.step;
    int sum = 0;
    for (int i = 0; i < rows.count; i++, at += stride)
        sum += weights[i] * sample_load(format, at);
    return source_is_10bit(format) ? filtered_column10(sum, y->bits)
                                   : filtered_column8(sum, y->bits);
}

// Component c at entries ix and iy of the axes: columns first, each rounded, then their row.
static inline FRAMED_HD int sample_filtered(const struct image *src, enum pixel_format format,
                                            int c, const struct filter_axis *x, int ix,
                                            const struct filter_axis *y, int iy)
{
    const struct filter_span columns = x->spans[ix];
    const int16_t *weights = x->weights + (ptrdiff_t)ix * x->stride;
    int sum = 0;
    for (int i = 0; i < columns.count; i++)
        sum += weights[i] * column_filtered(src, format, c, columns.first + i, y, iy);
    return filtered_row(sum);
}

// Levels of output pixel (dx, dy); returns as warp_levels.
static inline FRAMED_HD bool filtered_levels(const struct image *src, const struct warp *warp,
                                             enum pixel_format format, int dx, int dy,
                                             uint8_t level[3])
{
    const struct filter_tables *f = &warp->filtered;
    const int x = f->turned ? dy : dx, y = f->turned ? dx : dy;
    if (f->coverage_x[x] == 0 || f->coverage_y[y] == 0)
        return false;
    int sample[3] = {0};
    FRAMED_ROLLED
    for (int c = components_first(warp); c < components_end(warp, format); c++) {
        const bool chroma = c > 0 && !source_is_rgb(format);
        sample[c] = sample_filtered(src, format, c, chroma ? &f->chroma_x : &f->luma_x, x,
                                    chroma ? &f->chroma_y : &f->luma_y, y);
    }
    levels_of_samples(warp, format, sample, coverage_of(f->coverage_x[x], f->coverage_y[y]), level);
    return true;
}

// Levels of output pixel (x, y) by the warp's filter; returns as warp_levels.
static inline FRAMED_HD bool pixel_levels(const struct image *src, const struct warp *warp,
                                          enum pixel_format format, int x, int y, uint8_t level[3])
{
    if (filter_weighs(warp->filter))
        return filtered_levels(src, warp, format, x, y, level);
    return warp_levels(src, warp, format, warp->colx[x] + warp->rowx[y],
                       warp->coly[x] + warp->rowy[y], level);
}

#ifdef __cplusplus
}
#endif
#endif
