// Tests yuv's reference against the definition in double and the plain 8-bit formula.
#include "tests/kernels/cases.h"
#include "tests/kernels/definition.h"
#include "tests/test.h"

// The expected resolution of the op, restated without its code.
struct expectation {
    struct colour from, to;
    bool keeps;
};

static bool says(enum matrix matrix, enum matrix other)
{
    return matrix == other || (matrix == MATRIX_BT601 && other == MATRIX_BT601_8BIT) ||
           (matrix == MATRIX_BT601_8BIT && other == MATRIX_BT601);
}

// `src` must state all of its colour.
static struct expectation expect(const struct yuv_params *p, const struct image *src)
{
    const bool rgb = source_is_rgb(src->format);
    struct expectation e = {src->colour, p->colour, false};
    if (e.to.matrix == MATRIX_UNSPECIFIED)
        e.to.matrix = !rgb ? e.from.matrix : src->height >= 720 ? MATRIX_BT709 : MATRIX_BT601;
    if (e.to.range == RANGE_UNSPECIFIED)
        e.to.range = rgb ? RANGE_LIMITED : e.from.range;
    if (e.to.matrix == MATRIX_BT601_8BIT)
        e.to.range = RANGE_LIMITED;
    e.keeps = !rgb && says(e.from.matrix, e.to.matrix) && e.from.range == e.to.range;
    e.to.siting = e.from.siting;
    const bool chroma = !rgb && components(src->format) > 1;
    if (is_420(p->format) && (!e.keeps || (chroma && shared_x(src->format, 1) == 1)))
        e.to.siting = SITING_CENTER;
    else if (is_420(p->format) && is_422(src->format) && e.from.siting == SITING_TOPLEFT)
        e.to.siting = SITING_LEFT; // the mean of two rows is between them
    return e;
}

static struct rgb rgb_definition(const struct image *src, struct colour from, int x, int y)
{
    const struct window whole = {0, 0, src->width, src->height};
    x = x < src->width ? x : src->width - 1;
    y = y < src->height ? y : src->height - 1;
    return picture_at(src, from, x, y, whole);
}

static struct rgb block_definition(const struct image *src, struct colour from, int x, int y)
{
    struct rgb sum = {0};
    for (int i = 0; i < 4; i++) {
        const struct rgb p = rgb_definition(src, from, 2 * x + i % 2, 2 * y + i / 2);
        sum.r += p.r / 4;
        sum.g += p.g / 4;
        sum.b += p.b / 4;
    }
    return sum;
}

// The plain formula of bt601-8bit, in integers.
static int bt601_8bit(int c, int r, int g, int b)
{
    const int y = ((66 * r + 129 * g + 25 * b) >> 8) + 16;
    const int u = ((-38 * r - 74 * g + 112 * b) >> 8) + 128;
    const int v = ((112 * r - 94 * g - 18 * b) >> 8) + 128;
    return c == 0 ? y : c == 1 ? u : v;
}

static double yuv_of(struct rgb p, struct colour to, int c)
{
    double kr, kb;
    matrix_weights(to.matrix, &kr, &kb);
    const double luma = kr * p.r + (1 - kr - kb) * p.g + kb * p.b;
    const bool full = to.range == RANGE_FULL;
    if (c == 0)
        return full ? luma : 16 + luma * 219 / 255;
    const double difference = c == 1 ? (p.b - luma) / (2 - 2 * kb) : (p.r - luma) / (2 - 2 * kr);
    return 128 + difference * (full ? 1 : 224 / 255.0);
}

static double converted_definition(const struct yuv_params *p, const struct image *src,
                                   const struct expectation *e, int c, int x, int y)
{
    const struct rgb rgb = c > 0 && is_420(p->format) ? block_definition(src, e->from, x, y)
                                                      : rgb_definition(src, e->from, x, y);
    if (e->to.matrix == MATRIX_BT601_8BIT)
        return bt601_8bit(c, (int)half_up(rgb.r), (int)half_up(rgb.g), (int)half_up(rgb.b));
    return bounded(half_up(yuv_of(rgb, e->to, c)), 0, 255);
}

// Returns the mean of a component's samples in the 2x2 block of pixels at (2x, 2y).
static double block_samples(const struct image *src, int c, int x, int y)
{
    const int columns = 2 / shared_x(src->format, c), rows = 2 / shared_y(src->format, c);
    double sum = 0;
    for (int i = 0; i < columns * rows; i++)
        sum += sample_get(src, c, (int)fmin(columns * x + i % columns, component_width(src, c) - 1),
                          (int)fmin(rows * y + i / columns, component_height(src, c) - 1));
    return sum / (columns * rows);
}

static double kept_definition(const struct yuv_params *p, const struct image *src,
                              const struct expectation *e, int c, int x, int y)
{
    const struct window whole = {0, 0, src->width, src->height};
    double value = no_chroma(src->format);
    if (c == 0)
        value = sample_get(src, c, x, y);
    else if (!is_420(p->format))
        value = chroma(src, c, x, y, e->from.siting, whole);
    else if (components(src->format) > 1)
        value = block_samples(src, c, x, y);
    return bounded(half_up(value / (is_10bit(src->format) ? 4 : 1)), 0, 255);
}

// Returns the largest distance of a sample from the rounded definition.
static double worst_sample(const struct yuv_params *p, const struct image *src,
                           const struct expectation *e, const struct image *dst)
{
    double worst = 0;
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < component_height(dst, c); y++)
            for (int x = 0; x < component_width(dst, c); x++) {
                const double expected = e->keeps ? kept_definition(p, src, e, c, x, y)
                                                 : converted_definition(p, src, e, c, x, y);
                worst = fmax(worst, fabs(sample_get(dst, c, x, y) - expected));
            }
    return worst;
}

// Integers without interpolation have one right answer.
static double allowed(const struct yuv_params *p, const struct image *src,
                      const struct expectation *e)
{
    const bool plain = e->to.matrix == MATRIX_BT601_8BIT && source_is_rgb(src->format);
    return plain || (e->keeps && is_420(p->format)) ? 0 : 1;
}

static void check_case(const struct yuv_params *p, const struct image *src)
{
    char text[400];
    struct op op;
    const int error = op_init(&op, &(struct op_params){OP_YUV, {.yuv = *p}}, src);
    CHECK(error == 0, "%d: %s", error, yuv_case_text(text, p, src));
    if (error)
        return;
    const struct expectation e = expect(p, src);
    const struct colour *to = &op.dst.colour;
    CHECK(to->matrix == e.to.matrix && to->range == e.to.range && to->siting == e.to.siting,
          "colour %d/%d/%d: %s", to->matrix, to->range, to->siting, yuv_case_text(text, p, src));
    void *result = malloc(op.dst_bytes);
    struct image dst;
    op_lay_out(&op, &dst, result);
    op_reference(&dst, src, &op, (struct band){0, dst.height}, false);
    const double worst = worst_sample(p, src, &e, &dst);
    CHECK(worst <= allowed(p, src, &e), "%g: %s", worst, yuv_case_text(text, p, src));
    free(result);
    op_finish(&op);
}

static void test_cases(struct random *random, enum pixel_format source)
{
    const long n = cases_from(3000);
    for (long i = 0; i < n; i++) {
        struct picture picture = picture_random(source, 20, random);
        picture.image.colour = colour_case(random);
        const struct yuv_params p = yuv_case(random);
        check_case(&p, &picture.image);
        picture_free(&picture);
    }
    // High enough to default to bt709; wider than two runs of pixels if time permits.
    struct picture picture = picture_sized(source, n < 300 ? 35 : 515, 721, random);
    picture.image.colour = colour_case(random);
    for (long i = 0; i <= n / 1500; i++) {
        const struct yuv_params p = yuv_case(random);
        check_case(&p, &picture.image);
    }
    picture_free(&picture);
}

static void set_pixel(const struct image *image, int x, int r, int g, int b)
{
    sample_put(image, 0, x, 0, r, 0);
    sample_put(image, 1, x, 0, g, 0);
    sample_put(image, 2, x, 0, b, 0);
}

// Gray must have neutral chroma, and black and white their levels, in every matrix and range.
static void test_grays(void)
{
    struct picture picture = picture_new(PIXEL_RGB24, 256, 1, STRIDES_TIGHT);
    for (int i = 0; i < 256; i++)
        set_pixel(&picture.image, i, i, i, i);
    uint8_t samples[3][256];
    struct image dst = {.format = PIXEL_YUV444P, .width = 256, .height = 1};
    image_lay_out(&dst, samples);
    for (int matrix = MATRIX_BT601; matrix <= MATRIX_BT601_8BIT; matrix++)
        for (int range = RANGE_LIMITED; range <= RANGE_FULL; range++) {
            if (matrix == MATRIX_BT601_8BIT && range == RANGE_FULL)
                continue;
            const struct yuv_params p = {.format = PIXEL_YUV444P,
                                         .colour = {(enum matrix)matrix, (enum range)range, 0}};
            struct op op;
            if (op_init(&op, &(struct op_params){OP_YUV, {.yuv = p}}, &picture.image) < 0) {
                CHECK(false, "op_init: matrix %d range %d", matrix, range);
                continue;
            }
            op_reference(&dst, &picture.image, &op, (struct band){0, 1}, false);
            int coloured = 0;
            for (int i = 0; i < 256; i++)
                coloured += samples[1][i] != 128 || samples[2][i] != 128;
            CHECK(coloured == 0, "%d: matrix %d range %d", coloured, matrix, range);
            const int black = range == RANGE_FULL ? 0 : 16, white = range == RANGE_FULL ? 255 : 235;
            CHECK(samples[0][0] == black && samples[0][255] == white, "%d %d: matrix %d range %d",
                  samples[0][0], samples[0][255], matrix, range);
            op_finish(&op);
        }
    picture_free(&picture);
}

// Tests all colours with extreme components and many others, in every RGB source.
static void test_bt601_8bit(struct random *random, enum pixel_format source)
{
    enum { WIDTH = 16384 };
    struct picture picture = picture_new(source, WIDTH, 1, STRIDES_TIGHT);
    uint8_t *samples = malloc(3 * WIDTH);
    struct image dst = {.format = PIXEL_YUV24, .width = WIDTH, .height = 1};
    image_lay_out(&dst, samples);
    for (int x = 0; x < WIDTH; x++) {
        const uint64_t bits = random_next(random);
        if (x < 8)
            set_pixel(&picture.image, x, x & 1 ? 255 : 0, x & 2 ? 255 : 0, x & 4 ? 255 : 0);
        else
            set_pixel(&picture.image, x, bits & 255, bits >> 8 & 255, bits >> 16 & 255);
    }
    const struct yuv_params p = {.format = PIXEL_YUV24, .colour.matrix = MATRIX_BT601_8BIT};
    struct op op;
    if (op_init(&op, &(struct op_params){OP_YUV, {.yuv = p}}, &picture.image) == 0)
        op_reference(&dst, &picture.image, &op, (struct band){0, 1}, false);
    int wrong = 0;
    for (int x = 0; x < WIDTH; x++)
        for (int c = 0; c < 3; c++)
            wrong += samples[3 * x + c] != bt601_8bit(c, sample_get(&picture.image, 0, x, 0),
                                                      sample_get(&picture.image, 1, x, 0),
                                                      sample_get(&picture.image, 2, x, 0));
    CHECK(wrong == 0, "%d: %s", wrong, pixel_format_name(source));
    op_finish(&op);
    free(samples);
    picture_free(&picture);
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    printf("yuv: seed %llu\n", (unsigned long long)random.state);
    for (int source = 0; source < SOURCES; source++)
        TEST(test_cases(&random, sources[source]));
    for (int source = PIXEL_BGRA; source <= PIXEL_GBRP; source++)
        TEST(test_bt601_8bit(&random, (enum pixel_format)source));
    TEST(test_grays());
    return test_end();
}
