// The op `yuv`, and its reference: it is the specification, faster versions give the same bytes.
#include <errno.h>

#include "kernels/colour.h"
#include "kernels/geometry.h"
#include "kernels/sample.h"

// What the samples of the result mean. 0, or -EINVAL where the kernel cannot give what is asked
// for.
static int yuv_colour(struct yuv *yuv, const struct yuv_params *params, const struct image *src,
                      struct colour *ret)
{
    const bool rgb = source_is_rgb(src->format);
    const struct colour from = colour_resolve(src->colour, src->height);
    const struct colour none = {0};
    struct colour to =
        colour_resolve(colour_override(params->colour, rgb ? none : from), src->height);
    if (to.matrix == MATRIX_BT601_8BIT) {
        if (params->colour.range == RANGE_FULL)
            return -EINVAL;
        to.range = RANGE_LIMITED;
    }
    yuv->convert = rgb || !colour_same_samples(from, to);
    if (yuv->convert && format_is_420(params->format))
        to.siting = SITING_CENTER; // the mean of four pixels
    else
        to.siting = from.siting;
    if (params->colour.siting != SITING_UNSPECIFIED && params->colour.siting != to.siting)
        return -EINVAL;
    yuv->chroma_x = chroma_position_x(src->format, from.siting);
    yuv->chroma_y = chroma_position_y(src->format, from.siting);
    yuv->rgb = colour_to_rgb(from, pixel_layout_of(src->format).bits);
    yuv->yuv = colour_to_yuv(to);
    *ret = to;
    return 0;
}

static int yuv_init(struct op *op, const struct op_params *op_params, const struct image *src)
{
    const struct yuv_params *params = &op_params->yuv;
    if (!(pixel_layout_of(params->format).uses & FORMAT_RESULT))
        return -EINVAL;
    op->yuv.width = src->width;
    op->yuv.height = src->height;
    op->yuv.source = src->format;
    op->yuv.format = params->format;
    op->dst = (struct image){.format = params->format, .width = src->width, .height = src->height};
    op->batch = -1;
    op->dst_bytes = image_lay_out(&op->dst, NULL);
    return yuv_colour(&op->yuv, params, src, &op->dst.colour);
}

static struct band yuv_source_rows(const struct op *op, struct band out)
{
    const struct yuv *yuv = &op->yuv;
    if (!source_has_chroma(yuv->source) || (format_is_420(yuv->format) && !yuv->convert))
        return out;
    return with_chroma_rows(out, yuv->chroma_y, out.y0 * 65536, (out.y1 - 1) * 65536, 0,
                            yuv->height);
}

// --- the reference: rows are made in runs of pixels, one component after the other, and then
// stored where the format wants them

enum { RUN = 256 }; // pixels; even, so that no 2x2 block is cut

struct rgb_run {
    uint8_t r[RUN], g[RUN], b[RUN];
};

static void store_run(const struct image *dst, int c, int x, int y, int n,
                      const uint8_t samples[RUN])
{
    const struct component k = component_of(dst->format, c);
    uint8_t *to = component_row(dst, k, y) + (ptrdiff_t)x * k.step;
    for (int i = 0; i < n; i++)
        to[i * k.step] = samples[i];
}

// --- through RGB

static inline FRAMED_HD void read_rgb_of(const struct image *src, const struct yuv *yuv,
                                         enum pixel_format format, int x, int y, int n,
                                         struct rgb_run *run)
{
    for (int i = 0; i < n; i++) {
        uint8_t rgb[3];
        rgb_at(src, yuv, format, x + i, y, rgb);
        run->r[i] = rgb[0];
        run->g[i] = rgb[1];
        run->b[i] = rgb[2];
    }
}

// n source pixels from (x, y) on; the last one twice where n is odd, to complete its 2x2 block.
static void read_rgb(const struct image *src, const struct yuv *yuv, int x, int y, int n,
                     struct rgb_run *run)
{
    switch (yuv->source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        read_rgb_of(src, yuv, format, x, y, n, run);                                               \
        break;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        break;
    }
    if (n % 2) {
        run->r[n] = run->r[n - 1];
        run->g[n] = run->g[n - 1];
        run->b[n] = run->b[n - 1];
    }
}

static void store_component(const struct image *dst, const struct yuv *yuv, int c, int x, int y,
                            int n, const struct rgb_run *run)
{
    const struct rgb_to_yuv to_yuv = yuv->yuv;
    uint8_t samples[RUN];
    for (int i = 0; i < n; i++)
        samples[i] = (uint8_t)yuv_level(&to_yuv, c, run->r[i], run->g[i], run->b[i]);
    store_run(dst, c, x, y, n, samples);
}

static void convert_444(const struct image *dst, const struct image *src, const struct yuv *yuv,
                        int x, int y, int n)
{
    struct rgb_run run;
    read_rgb(src, yuv, x, y, n, &run);
    for (int c = 0; c < 3; c++)
        store_component(dst, yuv, c, x, y, n, &run);
}

// One channel of the 2x2 blocks of two rows.
static void block_means(uint8_t mean[RUN / 2], const uint8_t top[RUN], const uint8_t bottom[RUN],
                        int blocks)
{
    for (int i = 0; i < blocks; i++)
        mean[i] =
            (uint8_t)block_mean(top[2 * i] + top[2 * i + 1] + bottom[2 * i] + bottom[2 * i + 1]);
}

// Rows y and y + 1; the picture's last row stands for the one below it.
static void convert_420(const struct image *dst, const struct image *src, const struct yuv *yuv,
                        int x, int y, int n)
{
    const int below = y + 1 < yuv->height ? y + 1 : y;
    const int blocks = (n + 1) / 2;
    struct rgb_run top, bottom, mean;
    read_rgb(src, yuv, x, y, n, &top);
    read_rgb(src, yuv, x, below, n, &bottom);
    store_component(dst, yuv, 0, x, y, n, &top);
    store_component(dst, yuv, 0, x, below, n, &bottom);
    block_means(mean.r, top.r, bottom.r, blocks);
    block_means(mean.g, top.g, bottom.g, blocks);
    block_means(mean.b, top.b, bottom.b, blocks);
    store_component(dst, yuv, 1, x / 2, y / 2, blocks, &mean);
    store_component(dst, yuv, 2, x / 2, y / 2, blocks, &mean);
}

// --- samples that keep their values

static inline FRAMED_HD void keep_run_of(const struct image *src, enum pixel_format format, int c,
                                         int x, int y, int n, uint8_t samples[RUN])
{
    for (int i = 0; i < n; i++)
        samples[i] = (uint8_t)kept_at(src, format, c, x + i, y);
}

// x, y and n count samples of component c.
static void keep_run(const struct image *dst, const struct image *src, const struct yuv *yuv, int c,
                     int x, int y, int n)
{
    uint8_t samples[RUN];
    switch (yuv->source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        keep_run_of(src, format, c, x, y, n, samples);                                             \
        break;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        break;
    }
    store_run(dst, c, x, y, n, samples);
}

static inline FRAMED_HD void upsample_run_of(const struct image *src, const struct yuv *yuv,
                                             enum pixel_format format, int c, int x, int y, int n,
                                             uint8_t samples[RUN])
{
    for (int i = 0; i < n; i++)
        samples[i] = (uint8_t)kept_interpolated(chroma_at(src, yuv, format, c, x + i, y));
}

static void upsample_run(const struct image *dst, const struct image *src, const struct yuv *yuv,
                         int c, int x, int y, int n)
{
    uint8_t samples[RUN];
    switch (yuv->source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        upsample_run_of(src, yuv, format, c, x, y, n, samples);                                    \
        break;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        break;
    }
    store_run(dst, c, x, y, n, samples);
}

static void keep_444(const struct image *dst, const struct image *src, const struct yuv *yuv, int x,
                     int y, int n)
{
    keep_run(dst, src, yuv, 0, x, y, n);
    upsample_run(dst, src, yuv, 1, x, y, n);
    upsample_run(dst, src, yuv, 2, x, y, n);
}

static void keep_420(const struct image *dst, const struct image *src, const struct yuv *yuv, int x,
                     int y, int n)
{
    keep_run(dst, src, yuv, 0, x, y, n);
    if (y + 1 < yuv->height)
        keep_run(dst, src, yuv, 0, x, y + 1, n);
    keep_run(dst, src, yuv, 1, x / 2, y / 2, (n + 1) / 2);
    keep_run(dst, src, yuv, 2, x / 2, y / 2, (n + 1) / 2);
}

static void yuv_reference(const struct image *dst, const struct image *src, const struct op *op,
                          struct band band, bool filled)
{
    (void)filled;
    const struct yuv *yuv = &op->yuv;
    const bool halved = format_is_420(yuv->format);
    for (int y = band.y0; y < band.y1; y += halved ? 2 : 1) {
        for (int x = 0; x < yuv->width; x += RUN) {
            const int n = yuv->width - x < RUN ? yuv->width - x : RUN;
            if (halved && yuv->convert)
                convert_420(dst, src, yuv, x, y, n);
            else if (halved)
                keep_420(dst, src, yuv, x, y, n);
            else if (yuv->convert)
                convert_444(dst, src, yuv, x, y, n);
            else
                keep_444(dst, src, yuv, x, y, n);
        }
    }
}

const struct op_type yuv_type = {
    .name = "yuv",
    .init = yuv_init,
    .source_rows = yuv_source_rows,
    .reference = yuv_reference,
};
