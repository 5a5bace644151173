// Tests yuv's reference with a geometry: kept samples against the definition in double, and
// converted colours against the composition of the two ops.
#include <errno.h>

#include "tests/kernels/cases.h"
#include "tests/kernels/definition.h"
#include "tests/test.h"

// True if samples keep their values; `src` states all of its colour.
static bool keeps(const struct yuv_params *p, const struct image *src)
{
    const enum matrix from = src->colour.matrix, to = p->colour.matrix;
    const bool plain = to == MATRIX_BT601_8BIT; // its range is limited
    const bool same_matrix =
        to == MATRIX_UNSPECIFIED || to == from || (plain && from == MATRIX_BT601);
    const enum range range = plain                                  ? RANGE_LIMITED
                             : p->colour.range != RANGE_UNSPECIFIED ? p->colour.range
                                                                    : src->colour.range;
    return !source_is_rgb(src->format) && same_matrix && range == src->colour.range;
}

// Returns the size that holds the rotated crop.
static void natural_size(const struct warp_params *g, const struct image *src, int *width,
                         int *height)
{
    const struct window w = warp_window(g, src);
    const bool lies = src->orientation % 2 && !g->has_affine;
    const double across = lies ? w.y1 - w.y0 : w.x1 - w.x0, down = lies ? w.x1 - w.x0 : w.y1 - w.y0;
    const double angle = g->has_affine ? 0 : g->rotate * acos(-1) / 180;
    *width = (int)ceil(fabs(cos(angle)) * across + fabs(sin(angle)) * down - 1e-6);
    *height = (int)ceil(fabs(sin(angle)) * across + fabs(cos(angle)) * down - 1e-6);
}

static double fill_level(const uint8_t fill[3], struct colour to, int c)
{
    double kr, kb;
    matrix_weights(to.matrix, &kr, &kb);
    const double luma = kr * fill[0] + (1 - kr - kb) * fill[1] + kb * fill[2];
    const bool full = to.range == RANGE_FULL && to.matrix != MATRIX_BT601_8BIT;
    if (c == 0)
        return full ? luma : 16 + luma * 219 / 255;
    const double difference =
        c == 1 ? (fill[2] - luma) / (2 - 2 * kb) : (fill[0] - luma) / (2 - 2 * kr);
    return 128 + difference * (full ? 1 : 224 / 255.0);
}

// Returns the unrounded sample (x, y) of component c of a result whose samples keep their values.
static double kept_definition(const struct warp_params *g, const struct image *src,
                              const struct image *dst, int c, int x, int y)
{
    const bool halved = c > 0 && is_420(dst->format);
    const enum siting siting = dst->colour.siting;
    const struct window window = warp_window(g, src);
    struct footprint foot = warp_footprint(g, src, 0, 0);
    double px = x, py = y, sx, sy;
    if (halved) {
        px = fmin(2 * x + (siting == SITING_CENTER ? 0.5 : 0), dst->width - 1);
        py = fmin(2 * y + (siting == SITING_TOPLEFT ? 0 : 0.5), dst->height - 1);
    }
    warp_point(g, src, px + 0.5, py + 0.5, &sx, &sy);
    sx -= 0.5;
    sy -= 0.5;
    const double coverage =
        g->filter == FILTER_BILINEAR
            ? covered(sx, window.x0, window.x1) * covered(sy, window.y0, window.y1)
            : square_covered(sx, foot.width, window.x0, window.x1) *
                  square_covered(sy, foot.height, window.y0, window.y1);
    foot.width *= halved ? 2 : 1;
    foot.height *= halved ? 2 : 1;
    const double sample = c == 0 ? sampled(src, 0, sx, sy, foot, window)
                                 : chroma_sampled(src, c, sx, sy, foot, src->colour.siting, window);
    const double level = bounded(sample / (is_10bit(src->format) ? 4 : 1), 0, 255);
    return level * coverage + fill_level(g->fill, dst->colour, c) * (1 - coverage);
}

static double worst_kept(const struct warp_params *g, const struct image *src,
                         const struct image *dst)
{
    double worst = 0;
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < component_height(dst, c); y++)
            for (int x = 0; x < component_width(dst, c); x++) {
                const double expected = half_up(kept_definition(g, src, dst, c, x, y));
                worst = fmax(worst, fabs(sample_get(dst, c, x, y) - expected));
            }
    return worst;
}

static void *run(const struct op *op, const struct image *src, struct image *dst)
{
    void *result = malloc(op->dst_bytes);
    op_lay_out(op, dst, result);
    op_reference(dst, src, op, (struct band){0, dst->height}, false);
    return result;
}

// Compares the result with warp's picture converted by yuv.
static void check_composed(const struct op *op, const struct warp_params *g,
                           const struct image *src, const void *result, const char *text)
{
    struct op_params warp = {OP_WARP, {.warp = *g}};
    warp.warp.layout = LAYOUT_NHWC;
    struct op_params yuv = {
        OP_YUV,
        {.yuv = {.format = op->dst.format,
                 .colour = {op->dst.colour.matrix, op->dst.colour.range, SITING_UNSPECIFIED}}}};
    struct op first, second;
    struct image picture, dst;
    int error = op_init(&first, &warp, src);
    CHECK(error == 0, "%d: %s", error, text);
    if (error)
        return;
    void *rgb = run(&first, src, &picture);
    picture.format = PIXEL_RGB24;
    picture.colour = (struct colour){0};
    error = op_init(&second, &yuv, &picture);
    CHECK(error == 0, "%d: %s", error, text);
    if (error == 0) {
        void *expected = run(&second, &picture, &dst);
        CHECK(op->dst_bytes == second.dst_bytes && memcmp(expected, result, op->dst_bytes) == 0,
              "%s", text);
        CHECK(op->dst.colour.siting == second.dst.colour.siting || !is_420(dst.format), "%s", text);
        free(expected);
        op_finish(&second);
    }
    free(rgb);
    op_finish(&first);
}

static void check_case(struct yuv_params p, const struct image *src)
{
    char text[400];
    struct op op;
    struct warp_params g = p.geometry;
    yuv_case_text(text, &p, src);
    if (!keeps(&p, src))
        p.colour.siting = SITING_UNSPECIFIED;
    const int error = op_init(&op, &(struct op_params){OP_YUV, {.yuv = p}}, src);
    CHECK(error == 0 || error == -ERANGE, "%d: %s", error, text);
    if (error)
        return;
    if (g.width == 0) {
        natural_size(&g, src, &g.width, &g.height);
        g.fit = FIT_NONE;
    }
    CHECK(op.dst.width == g.width && op.dst.height == g.height, "%dx%d: %s", op.dst.width,
          op.dst.height, text);
    struct image dst;
    void *result = run(&op, src, &dst);
    if (keeps(&p, src)) {
        const double worst = worst_kept(&g, src, &dst);
        CHECK(worst <= 1, "%g: %s", worst, text);
        CHECK(p.colour.siting == SITING_UNSPECIFIED || dst.colour.siting == p.colour.siting,
              "siting %d: %s", dst.colour.siting, text);
    } else {
        check_composed(&op, &g, src, result, text);
    }
    free(result);
    op_finish(&op);
}

static void test_cases(struct random *random, enum pixel_format source)
{
    const long n = cases_from(600);
    for (long i = 0; i < n; i++) {
        struct picture picture = picture_random(source, i % 8 == 0 ? 70 : 24, random);
        picture.image.colour = colour_case(random);
        if (random_in(random, 0, 3) == 0)
            picture.image.orientation = (enum orientation)random_in(random, 0, 7);
        struct yuv_params p = yuv_case(random);
        yuv_geometry_case(random, &p, &picture.image, 20);
        check_case(p, &picture.image);
        picture_free(&picture);
    }
}

// A geometry that moves nothing must not change a sample. Sizes are even, because the last chroma
// of odd sizes is at the picture's edge.
static void test_nothing_moved(struct random *random, enum pixel_format source,
                               enum pixel_format format)
{
    for (int i = 0; i < 30; i++) {
        const int width = 2 * random_in(random, 1, 40), height = 2 * random_in(random, 1, 20);
        struct picture picture = picture_sized(source, width, height, random);
        picture.image.colour = colour_case(random);
        struct op_params params = {OP_YUV, {.yuv = {.format = format}}};
        struct op plain, moved;
        struct image dst[2];
        int error = op_init(&plain, &params, &picture.image);
        params.yuv.resized = true;
        error = error ? error : op_init(&moved, &params, &picture.image);
        CHECK(error == 0, "%d", error);
        if (error)
            break;
        void *expected = run(&plain, &picture.image, &dst[0]);
        void *result = run(&moved, &picture.image, &dst[1]);
        CHECK(plain.dst_bytes == moved.dst_bytes && memcmp(expected, result, plain.dst_bytes) == 0,
              "%s %dx%d siting %d -> %s", pixel_format_name(source), picture.image.width,
              picture.image.height, picture.image.colour.siting, pixel_format_name(format));
        free(expected);
        free(result);
        op_finish(&plain);
        op_finish(&moved);
        picture_free(&picture);
    }
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    printf("yuv_resized: seed %llu\n", (unsigned long long)random.state);
    for (int source = 0; source < SOURCES; source++)
        TEST(test_cases(&random, sources[source]));
    TEST(test_nothing_moved(&random, PIXEL_NV12, PIXEL_NV12));
    TEST(test_nothing_moved(&random, PIXEL_P010, PIXEL_YUV420P));
    TEST(test_nothing_moved(&random, PIXEL_YUV444P10, PIXEL_YUV24));
    TEST(test_nothing_moved(&random, PIXEL_BGRA, PIXEL_NV12));
    return test_end();
}
