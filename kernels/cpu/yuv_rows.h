// yuv in wide registers: rows in blocks of PIXELS pixels. A template, see fixed_lanes.h.
#ifndef FRAMED_KERNELS_CPU_YUV_ROWS_H
#define FRAMED_KERNELS_CPU_YUV_ROWS_H

#if defined(__aarch64__)
#include "kernels/cpu/rgb_neon.h"
#else
#include "kernels/cpu/rgb_x86.h"
#endif
#include "kernels/cpu/yuv_samples.h"
#include "kernels/ops.h"

// Layout of a source's pixels: four bytes each, three, or one in each of three planes.
enum packing { PACKING_4, PACKING_3, PACKING_PLANES };

// A row of the source and the result, or two for a 4:2:0 result, from their first pixel on. A
// single last row is both. to[0] has all planes, to[1] only luma.
struct rows {
    const uint8_t *from[2][PLANES_MAX];
    uint8_t *to[2][PLANES_MAX];
};

// Bytes of n pixels in a plane of a row; n is even, or ends the row.
static inline FRAMED_HD int from_bytes(enum packing packing, int n)
{
    return packing == PACKING_4 ? 4 * n : packing == PACKING_3 ? 3 * n : n;
}

static inline FRAMED_HD int to_bytes(enum pixel_format format, int plane, int n)
{
    if (format == PIXEL_YUV24)
        return 3 * n;
    if (plane == 0 || format == PIXEL_YUV444P)
        return n;
    return format == PIXEL_NV12 ? (n + 1) / 2 * 2 : (n + 1) / 2;
}

static inline FRAMED_HD int from_planes(enum packing packing)
{
    return packing == PACKING_PLANES ? 3 : 1;
}

static inline FRAMED_HD int to_planes(enum pixel_format format)
{
    return format == PIXEL_YUV24 ? 1 : format == PIXEL_NV12 ? 2 : 3;
}

// --- blocks

static inline FRAMED_HD struct pixels pixels_at(const struct rows *rows, enum packing packing,
                                                int row, int x)
{
    const uint8_t *const *from = rows->from[row];
    if (packing == PACKING_4)
        return pixels_of_4(from[0] + 4 * x);
    if (packing == PACKING_3)
        return pixels_of_3(from[0] + 3 * x);
    return pixels_of_planes(load_u8(from[0] + x), load_u8(from[1] + x), load_u8(from[2] + x));
}

static inline FRAMED_HD void block_444(const struct rows *rows, enum packing packing,
                                       enum pixel_format format, const struct weights *weights,
                                       int x)
{
    const struct pixels p = pixels_at(rows, packing, 0, x);
    if (format == PIXEL_YUV24) {
        store_yuv24(rows->to[0][0] + 3 * x, &p, weights);
        return;
    }
    for (int c = 0; c < 3; c++)
        store_u8(rows->to[0][c] + x, levels(&p, weights, c));
}

static inline FRAMED_HD void block_420(const struct rows *rows, enum packing packing,
                                       enum pixel_format format, const struct weights *weights,
                                       int x)
{
    const struct pixels top = pixels_at(rows, packing, 0, x),
                        bottom = pixels_at(rows, packing, 1, x);
    store_u8(rows->to[0][0] + x, levels(&top, weights, 0));
    store_u8(rows->to[1][0] + x, levels(&bottom, weights, 0));
    const struct means means = means_of(&top, &bottom);
    const vec_u8 uv = chroma_of(&means, weights);
    if (format == PIXEL_NV12)
        store_u8(rows->to[0][1] + x, uv);
    else
        halves_store(rows->to[0][1] + x / 2, rows->to[0][2] + x / 2, halves_split(uv));
}

static inline FRAMED_HD void block(const struct rows *rows, enum packing packing,
                                   enum pixel_format format, const struct weights *weights, int x)
{
    if (format_is_420(format))
        block_420(rows, packing, format, weights, x);
    else
        block_444(rows, packing, format, weights, x);
}

// Converts the last n < PIXELS pixels of the row, from x on, in a block that repeats the last
// pixel: this completes an odd row's 2x2 block.
static inline void block_of_end(const struct rows *rows, enum packing packing,
                                enum pixel_format format, const struct weights *weights, int x,
                                int n)
{
    const int halved = format_is_420(format);
    uint8_t from[2][PLANES_MAX][4 * PIXELS], to[2][PLANES_MAX][3 * PIXELS];
    struct rows end;
    for (int row = 0; row <= halved; row++) {
        for (int i = 0; i < from_planes(packing); i++) {
            const int bytes = from_bytes(packing, n), pixel = from_bytes(packing, 1);
            uint8_t *copy = from[row][i];
            memset(copy, 0, sizeof(from[row][i]));
            memcpy(copy, rows->from[row][i] + from_bytes(packing, x), bytes);
            memcpy(copy + bytes, copy + bytes - pixel, pixel);
            end.from[row][i] = copy;
        }
        for (int i = 0; i < to_planes(format); i++)
            end.to[row][i] = to[row][i];
    }
    block(&end, packing, format, weights, 0);
    for (int row = 0; row <= halved; row++)
        for (int i = 0; i < (row == 0 ? to_planes(format) : 1); i++)
            memcpy(rows->to[row][i] + to_bytes(format, i, x), to[row][i], to_bytes(format, i, n));
}

// Converts n pixels; the last block may overlap the one before it.
static inline FRAMED_HD void convert_rows_of(const struct rows *rows, enum packing packing,
                                             enum pixel_format format,
                                             const struct weights *weights, int n)
{
    int x = 0;
    for (; x + PIXELS <= n; x += PIXELS)
        block(rows, packing, format, weights, x);
    if (x == n)
        return;
    if (n > PIXELS && !(format_is_420(format) && n % 2))
        block(rows, packing, format, weights, n - PIXELS);
    else
        block_of_end(rows, packing, format, weights, x, n - x);
}

#define FOR_EACH_RESULT(X)                                                                         \
    X(PIXEL_NV12)                                                                                  \
    X(PIXEL_YUV420P)                                                                               \
    X(PIXEL_YUV444P)                                                                               \
    X(PIXEL_YUV24)

static inline void convert_rows(const struct rows *rows, enum packing packing,
                                enum pixel_format format, const struct weights *weights, int n)
{
    switch (format) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        if (packing == PACKING_4)                                                                  \
            convert_rows_of(rows, PACKING_4, format, weights, n);                                  \
        else if (packing == PACKING_3)                                                             \
            convert_rows_of(rows, PACKING_3, format, weights, n);                                  \
        else                                                                                       \
            convert_rows_of(rows, PACKING_PLANES, format, weights, n);                             \
        break;
        FOR_EACH_RESULT(CASE)
#undef CASE
    default:
        break;
    }
}

// --- bands

static inline void to_rows(struct rows *rows, const struct image *dst, int y, int below)
{
    const int halved = format_is_420(dst->format);
    for (int i = 0; i < to_planes(dst->format); i++) {
        const struct plane *plane = &dst->plane[i];
        rows->to[0][i] = plane->data + (ptrdiff_t)(i > 0 && halved ? y / 2 : y) * plane->stride;
    }
    rows->to[1][0] = dst->plane[0].data + (ptrdiff_t)below * dst->plane[0].stride;
}

static inline enum packing packing_of(enum pixel_format source)
{
    if (source == PIXEL_GBRP)
        return PACKING_PLANES;
    return source == PIXEL_BGRA || source == PIXEL_RGBA ? PACKING_4 : PACKING_3;
}

static inline void convert_rgb(const struct image *dst, const struct image *src,
                               const struct yuv *yuv, struct band band)
{
    static const uint8_t bgr[PLANES_MAX] = {1, 0, 2}; // planes of gbrp
    const enum pixel_format source = yuv->source, format = yuv->format;
    const enum packing packing = packing_of(source);
    const struct weights weights =
        weights_of(&yuv->yuv, source != PIXEL_RGBA && source != PIXEL_RGB24);
    for (int y = band.y0; y < band.y1; y += format_is_420(format) ? 2 : 1) {
        const int below = y + 1 < yuv->height ? y + 1 : y;
        struct rows rows;
        for (int i = 0; i < from_planes(packing); i++) {
            const struct plane *plane = &src->plane[packing == PACKING_PLANES ? bgr[i] : 0];
            rows.from[0][i] = plane->data + y * plane->stride;
            rows.from[1][i] = plane->data + below * plane->stride;
        }
        to_rows(&rows, dst, y, below);
        convert_rows(&rows, packing, format, &weights, yuv->width);
    }
}

// --- YUV sources

static inline void convert_yuv_run(const struct image *dst, const struct upsampling *up,
                                   const struct weights *weights, enum pixel_format format, int x,
                                   int y, int n)
{
    const int halved = format_is_420(format);
    const int below = y + 1 < up->yuv->height ? y + 1 : y;
    struct rgb_planes rgb[2];
    struct rows rows;
    to_rows(&rows, dst, y, below);
    for (int row = 0; row <= halved; row++) {
        rgb_run(&rgb[row], up, x, row ? below : y, n);
        for (int i = 0; i < 3; i++)
            rows.from[row][i] = rgb[row].channel[i];
        for (int i = 0; i < (row == 0 ? to_planes(format) : 1); i++)
            rows.to[row][i] += to_bytes(format, i, x);
    }
    convert_rows(&rows, PACKING_PLANES, format, weights, n);
}

static inline void triples_run(uint8_t *to, const uint8_t *y, const uint8_t *u, const uint8_t *v,
                               int n)
{
    int i = 0;
    for (; i + PIXELS <= n; i += PIXELS)
        store_triples(to + 3 * i, load_u8(y + i), load_u8(u + i), load_u8(v + i));
    if (i == n)
        return;
    uint8_t end[3 * PIXELS];
    store_triples(end, load_u8(y + i), load_u8(u + i), load_u8(v + i));
    memcpy(to + 3 * i, end, 3 * (n - i));
}

static inline void keep_444_run(const struct image *dst, const struct upsampling *up,
                                enum pixel_format format, int x, int y, int n)
{
    uint8_t yuv[3][UPSAMPLE_RUN] = {{0}};
    keep_luma(up->yuv->source, yuv[0], up->src, x, y, n);
    chroma_run(yuv[1], up, 1, x, y, n);
    chroma_run(yuv[2], up, 2, x, y, n);
    if (format == PIXEL_YUV24) {
        triples_run(plane_row(dst, 0, y) + 3 * x, yuv[0], yuv[1], yuv[2], n);
        return;
    }
    for (int c = 0; c < 3; c++)
        memcpy(plane_row(dst, c, y) + x, yuv[c], n);
}

// Two rows of a 4:2:0 result; each chroma sample is the mean of a block.
static inline void keep_means_run(const struct image *dst, const struct upsampling *up,
                                  enum pixel_format format, int x, int y, int n)
{
    const int blocks = (n + 1) / 2;
    uint8_t chroma[2][UPSAMPLE_RUN / 2];
    for (int row = y; row < y + 2 && row < up->yuv->height; row++)
        keep_luma(up->yuv->source, plane_row(dst, 0, row) + x, up->src, x, row, n);
    for (int c = 1; c < 3; c++)
        kept_means_run(chroma[c - 1], up, c, x, y, blocks);
    if (format == PIXEL_NV12) {
        zip_samples(plane_row(dst, 1, y / 2) + x, chroma[0], chroma[1], blocks);
        return;
    }
    for (int c = 1; c < 3; c++)
        memcpy(plane_row(dst, c, y / 2) + x / 2, chroma[c - 1], blocks);
}

static inline void from_yuv(const struct image *dst, const struct image *src, const struct yuv *yuv,
                            struct band band)
{
    const struct upsampling up = {src, yuv};
    const struct weights weights = weights_of(&yuv->yuv, false);
    for (int y = band.y0; y < band.y1; y += format_is_420(yuv->format) ? 2 : 1) {
        for (int x = 0; x < yuv->width; x += UPSAMPLE_RUN) {
            const int n = yuv->width - x < UPSAMPLE_RUN ? yuv->width - x : UPSAMPLE_RUN;
            if (yuv->convert)
                convert_yuv_run(dst, &up, &weights, yuv->format, x, y, n);
            else if (format_is_420(yuv->format))
                keep_means_run(dst, &up, yuv->format, x, y, n);
            else
                keep_444_run(dst, &up, yuv->format, x, y, n);
        }
    }
}

// True if the source is 4:2:0 with U before V.
static inline bool chroma_is_kept(const struct yuv *yuv)
{
    return position_sub(yuv->chroma_y) > 0 && yuv->source != PIXEL_NV21;
}

static inline void yuv_rows(const struct image *dst, const struct image *src, const struct yuv *yuv,
                            struct band band)
{
    if (source_is_rgb(yuv->source))
        convert_rgb(dst, src, yuv, band);
    else if (!yuv->convert && format_is_420(yuv->format) && chroma_is_kept(yuv))
        keep_420(dst, src, yuv, band);
    else
        from_yuv(dst, src, yuv, band);
}

#endif
