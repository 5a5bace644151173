// Weights of a filter, from the matrix. They depend on one axis alone: a pixel's weights are the
// products of its column's and its row's.
//
// Weights are rounded so that the sum of the first n is correct to half a unit for every n: they
// sum to 1 << bits exactly, flat pictures stay flat, and errors do not add up along a span. Row
// weights have 12 bits if 8 samples suffice, so that sums of 8-bit samples fit 16-bit registers,
// else 14.
#include "kernels/warp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
    FEW_SAMPLES = 8,
    FEW_BITS = 12,
    STRIDE_UNIT = 8,
    PADDING = 8, // pixels whose weights are read together with the last one's
};

// One axis of a plane, in samples: the centre of output pixel i is slope * point + origin; samples
// lo <= k < hi are valid.
struct filter_map {
    enum filter filter;
    int n;
    const struct warp_points *points;
    double slope, origin;
    int lo, hi;
};

static double centre_of(const struct filter_map *map, int i)
{
    return map->slope * warp_point_at(map->points, i) + map->origin;
}

// Width of an output pixel in samples; its square extends half way to its neighbours.
static double width_of(const struct filter_map *map)
{
    return fabs(map->slope) * map->points->step;
}

// Share of sample k in the output pixel at `centre`, not normalised.
static double share_of(const struct filter_map *map, double centre, int k)
{
    const double width = width_of(map), reach = fmax(width, 1);
    if (map->filter == FILTER_TRIANGLE)
        return fmax(0, 1 - fabs(k - centre) / reach);
    return fmax(0, fmin(k + 0.5, centre + width / 2) - fmax(k - 0.5, centre - width / 2));
}

// Returns the span of output pixel i and writes its weights: room for map->hi - map->lo.
static struct filter_span span_at(const struct filter_map *map, int i, int bits, int16_t *weights)
{
    const double centre = centre_of(map, i), width = width_of(map);
    const double reach = map->filter == FILTER_TRIANGLE ? fmax(width, 1) : width / 2 + 0.5;
    const int first = (int)fmax(ceil(centre - reach), map->lo);
    const int last = (int)fmin(floor(centre + reach), map->hi - 1);
    double total = 0, sum = 0;
    for (int k = first; k <= last; k++)
        total += share_of(map, centre, k);
    if (!(total > 0)) { // chroma beyond the window's last sample: clamped to it
        weights[0] = (int16_t)(1 << bits);
        const double nearest = fmin(fmax(floor(centre + 0.5), map->lo), map->hi - 1);
        return (struct filter_span){(uint16_t)nearest, 1};
    }
    struct filter_span span = {0, 0};
    for (int k = first, given = 0; k <= last; k++) {
        sum += share_of(map, centre, k);
        const int up_to_here = k == last ? 1 << bits : (int)(sum / total * (1 << bits) + 0.5);
        const int weight = up_to_here - given;
        given = up_to_here;
        if (span.count == 0 && weight == 0)
            continue;
        if (span.count == 0)
            span.first = (uint16_t)k;
        weights[span.count++] = (int16_t)weight;
    }
    while (weights[span.count - 1] == 0)
        span.count--;
    return span;
}

// Sets bits and stride. `scratch`: like span_at's weights.
static void axis_measure(struct filter_axis *axis, const struct filter_map *map, bool rows,
                         int16_t *scratch)
{
    int most = 1;
    axis->bits = WEIGHT_BITS;
    for (int i = 0; i < map->n; i++) {
        const int count = span_at(map, i, axis->bits, scratch).count;
        most = count > most ? count : most;
    }
    if (rows && most <= FEW_SAMPLES)
        axis->bits = FEW_BITS;
    axis->stride = (most + STRIDE_UNIT - 1) / STRIDE_UNIT * STRIDE_UNIT;
}

static void axis_make(struct filter_axis *axis, const struct filter_map *map,
                      const uint16_t *coverage, int16_t *scratch)
{
    for (int i = 0; i < map->n; i++) {
        axis->spans[i] = (struct filter_span){0, 0};
        if (coverage[i])
            axis->spans[i] = span_at(map, i, axis->bits, scratch);
        for (int k = 0; k < axis->stride; k++)
            axis->weights[(ptrdiff_t)i * axis->stride + k] =
                (int16_t)(k < axis->spans[i].count ? scratch[k] : 0);
    }
    for (int k = 0; k < PADDING * axis->stride; k++)
        axis->weights[(ptrdiff_t)map->n * axis->stride + k] = 0;
}

// Share of each output pixel's square that lies in the window, along one axis of luma.
static void coverage_make(uint16_t *coverage, const struct filter_map *luma, enum edge edge)
{
    const double width = fabs(luma->slope);
    for (int i = 0; i < luma->n; i++) {
        const double centre = centre_of(luma, i);
        const double inside =
            fmin(centre + width / 2, luma->hi - 0.5) - fmax(centre - width / 2, luma->lo - 0.5);
        const int32_t nearest = position_snapped((int32_t)floor(65536 * centre + 0.5)) >> 16;
        if (edge == EDGE_REPEAT)
            coverage[i] = nearest >= luma->lo && nearest < luma->hi ? WEIGHT_ONE : 0;
        else
            coverage[i] = (uint16_t)floor(fmin(fmax(inside / width, 0), 1) * WEIGHT_ONE + 0.5);
    }
}

// Map of a plane with samples at positions `at`, from luma's.
static struct filter_map map_of(const struct filter_map *luma, struct position at)
{
    const int sub = position_sub(at);
    const int rounding = 1 << at.shift >> 1;
    struct filter_map map = *luma;
    map.slope = luma->slope / (1 << sub);
    map.origin = (luma->origin + (at.add - rounding) / 65536.0) / (1 << sub);
    map.lo = luma->lo >> sub;
    map.hi = ((luma->hi - 1) >> sub) + 1;
    return map;
}

// Makes luma's maps along the source's x and y. Returns -EINVAL if the axes mix.
static int maps_of(struct filter_map maps[2], const struct warp *warp, const double d[6],
                   bool *turned)
{
    const int w = warp->width, h = warp->height;
    const bool straight = d[1] == 0 && d[3] == 0;
    if (!straight && !(d[0] == 0 && d[4] == 0))
        return -EINVAL;
    *turned = !straight;
    const struct warp_points *x = &warp->across, *y = &warp->down;
    maps[0] = (struct filter_map){
        warp->filter, straight ? w : h, straight ? x : y, straight ? d[0] : d[1],
        d[2],         warp->x0,         warp->x1};
    maps[1] = (struct filter_map){
        warp->filter, straight ? h : w, straight ? y : x, straight ? d[4] : d[3],
        d[5],         warp->y0,         warp->y1};
    return 0;
}

static size_t rounded(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

static size_t spans_bytes(const struct filter_map *map)
{
    return rounded(map->n * sizeof(struct filter_span));
}

static size_t weights_bytes(const struct filter_axis *axis, const struct filter_map *map)
{
    return rounded((size_t)(map->n + PADDING) * axis->stride * sizeof(int16_t));
}

static size_t coverage_bytes(const struct filter_map *map)
{
    return rounded(map->n * sizeof(uint16_t));
}

int filter_init(struct warp *warp, const double d[6])
{
    struct filter_tables *f = &warp->filtered;
    struct filter_axis *const axes[] = {&f->luma_x, &f->chroma_x, &f->luma_y, &f->chroma_y};
    struct filter_map luma[2], maps[4];
    const int error = maps_of(luma, warp, d, &f->turned);
    if (error)
        return error;
    for (int i = 0; i < 4; i++)
        maps[i] = i % 2 == 0 ? luma[i / 2]
                             : map_of(&luma[i / 2], i < 2 ? warp->chroma_x : warp->chroma_y);

    const int width = warp->x1 - warp->x0, height = warp->y1 - warp->y0;
    int16_t *scratch = malloc((size_t)(width > height ? width : height) * sizeof(*scratch));
    uint8_t *at = NULL;
    if (scratch) {
        f->bytes = coverage_bytes(&luma[0]) + coverage_bytes(&luma[1]);
        for (int i = 0; i < 4; i++) {
            axis_measure(axes[i], &maps[i], i >= 2, scratch);
            f->bytes += spans_bytes(&maps[i]) + weights_bytes(axes[i], &maps[i]);
        }
        at = malloc(f->bytes);
    }
    if (!at) {
        free(scratch);
        return -ENOMEM;
    }

    for (int i = 0; i < 4; i++) {
        axes[i]->spans = (struct filter_span *)at;
        at += spans_bytes(&maps[i]);
        axes[i]->weights = (int16_t *)at;
        at += weights_bytes(axes[i], &maps[i]);
    }
    f->coverage_x = (uint16_t *)at;
    f->coverage_y = (uint16_t *)(at + coverage_bytes(&luma[0]));
    coverage_make(f->coverage_x, &luma[0], warp->edge);
    coverage_make(f->coverage_y, &luma[1], warp->edge);
    for (int i = 0; i < 4; i++)
        axis_make(axes[i], &maps[i], i < 2 ? f->coverage_x : f->coverage_y, scratch);
    free(scratch);
    return 0;
}

size_t filter_tables_room(const struct warp *warp)
{
    const int entries = 2 * (warp->width + warp->height) + 4 * PADDING;
    return warp->filtered.bytes + (size_t)entries * STRIDE_UNIT * sizeof(int16_t) + 4 * 16;
}

void filter_finish(struct warp *warp)
{
    free(warp->filtered.luma_x.spans);
}

// Adds the rows that some entries of the axis read to `rows`; a sample is 1 << sub rows high.
static void rows_add(struct band *rows, const struct filter_axis *axis, struct band entries,
                     int sub)
{
    for (int i = entries.y0; i < entries.y1; i++) {
        const struct filter_span span = axis->spans[i];
        if (span.count == 0)
            continue;
        const int y0 = span.first << sub, y1 = (span.first + span.count) << sub;
        const struct band before = *rows;
        rows->y0 = before.y1 == 0 || y0 < before.y0 ? y0 : before.y0;
        rows->y1 = y1 > before.y1 ? y1 : before.y1;
    }
}

struct band filter_source_rows(const struct warp *warp, struct band out)
{
    const struct filter_tables *f = &warp->filtered;
    const bool chroma = source_has_chroma(warp->source) && !gray_is_direct(warp);
    struct band rows = {0, 0};
    bool sees = !f->turned;
    for (int y = out.y0; f->turned && y < out.y1; y++)
        sees = sees || f->coverage_x[y] > 0;
    if (!sees)
        return rows;
    const struct band entries = f->turned ? (struct band){0, warp->width} : out;
    rows_add(&rows, &f->luma_y, entries, 0);
    if (chroma && rows.y1 > 0)
        rows_add(&rows, &f->chroma_y, entries, position_sub(warp->chroma_y));
    rows.y0 = rows.y0 > warp->y0 || rows.y1 == 0 ? rows.y0 : warp->y0;
    rows.y1 = rows.y1 < warp->y1 ? rows.y1 : warp->y1;
    return rows;
}
