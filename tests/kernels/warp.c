// Tests warp's reference against the definition in double, and elements against their levels.
#include "tests/kernels/cases.h"
#include "tests/kernels/definition.h"
#include "tests/test.h"

// Runs the reference over the whole picture; the caller frees the result.
static void *run(const struct op *op, const struct image *src)
{
    void *result = malloc(op->dst_bytes);
    struct image dst;
    op_lay_out(op, &dst, result);
    op_reference(&dst, src, op, (struct band){0, dst.height}, false);
    return result;
}

static size_t element_index(const struct warp_params *p, int c, int x, int y)
{
    const size_t channels = p->order == ORDER_GRAY ? 1 : 3, w = p->width, h = p->height;
    return p->layout == LAYOUT_NCHW ? (c * h + y) * w + x : (y * w + x) * channels + c;
}

// Returns the largest distance of a level from the rounded definition.
static double worst_level(const struct warp_params *p, const struct image *src,
                          struct colour colour, const uint8_t *levels)
{
    double worst = 0;
    for (int c = 0; c < (p->order == ORDER_GRAY ? 1 : 3); c++)
        for (int y = 0; y < p->height; y++)
            for (int x = 0; x < p->width; x++) {
                if (warp_is_undecided(p, src, x, y))
                    continue;
                const double expected = half_up(warp_definition(p, src, colour, x, y, c));
                worst = fmax(worst, fabs(levels[element_index(p, c, x, y)] - expected));
            }
    return worst;
}

static void check_levels(const struct warp_params *p, const struct image *src, struct colour colour)
{
    char text[400];
    struct op op;
    const int error = op_init(&op, &(struct op_params){OP_WARP, {.warp = *p}}, src);
    CHECK(error == 0, "%d: %s", error, warp_case_text(text, p, src));
    if (error)
        return;
    uint8_t *levels = run(&op, src);
    const double worst = worst_level(p, src, colour, levels);
    CHECK(worst <= 1, "%g: %s", worst, warp_case_text(text, p, src));
    free(levels);
    op_finish(&op);
}

// Gives the colour by the stream, or by parameters that override the stream's.
static void give_colour(struct random *random, struct colour colour, struct warp_params *p,
                        struct image *src)
{
    src->colour = colour;
    if (random_in(random, 0, 3) == 0) {
        src->colour = colour_case(random);
        p->colour = colour;
    }
}

static void test_small(struct random *random, enum pixel_format source, struct colour colour)
{
    for (int geometry = 0; geometry < GEOMETRIES; geometry++)
        for (int order = ORDER_RGB; order <= ORDER_GRAY; order++)
            for (int layout = LAYOUT_NCHW; layout <= LAYOUT_NHWC; layout++) {
                struct picture picture = picture_random(source, 24, random);
                struct warp_params p =
                    warp_case(random, (enum geometry)geometry, &picture.image, 16);
                p.order = (enum order)order;
                p.layout = (enum layout)layout;
                give_colour(random, colour, &p, &picture.image);
                check_levels(&p, &picture.image, colour);
                picture_free(&picture);
            }
}

enum { ROUND = 4 * 2 * 3 * GEOMETRIES * 3 * 2 }; // cases of test_colours

static void test_colours(struct random *random, enum pixel_format source)
{
    for (int matrix = MATRIX_BT601; matrix <= MATRIX_BT601_8BIT; matrix++)
        for (int range = RANGE_LIMITED; range <= RANGE_FULL; range++)
            for (int siting = SITING_LEFT; siting <= SITING_TOPLEFT; siting++) {
                const struct colour colour = {(enum matrix)matrix, (enum range)range,
                                              (enum siting)siting};
                test_small(random, source, colour);
            }
}

static void test_large(struct random *random, enum pixel_format source)
{
    static const int sizes[][4] = {
        {1920, 1080, 320, 320}, {641, 363, 300, 201}, {1, 700, 33, 65}, {2048, 1, 700, 9}};
    const int part = cases_from(400) < 100 ? 4 : 1; // divides sides if there is no time for all
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct picture picture = picture_sized(source, sizes[i][0], sizes[i][1], random);
        struct warp_params p =
            warp_case(random, i ? GEOMETRY_ALL : GEOMETRY_LETTERBOX, &picture.image, 1);
        p.width = sizes[i][2] / part;
        p.height = sizes[i][3] / part;
        if (sizes[i][0] == 1 || sizes[i][1] == 1)
            p.fit = FIT_STRETCH; // a line letterboxed into a box reaches beyond 32 bits
        const struct colour colour = colour_case(random);
        give_colour(random, colour, &p, &picture.image);
        check_levels(&p, &picture.image, colour);
        picture_free(&picture);
    }
}

// Filters that weigh samples, in every geometry they accept; orientations as streams give them.
static void test_filters(struct random *random, enum pixel_format source)
{
    const long n = cases_from(400);
    for (long i = 0; i < n; i++) {
        struct picture picture = picture_random(source, i % 4 == 0 ? 90 : 24, random);
        struct warp_params p = filter_case(random, &picture.image, 16);
        p.order = (enum order)random_in(random, ORDER_RGB, ORDER_GRAY);
        picture.image.orientation = (enum orientation)random_in(random, 0, 7);
        const struct colour colour = colour_case(random);
        give_colour(random, colour, &p, &picture.image);
        check_levels(&p, &picture.image, colour);
        picture_free(&picture);
    }
}

// The same with edges that repeat the picture's last samples, and with the nearest pixel.
static void test_edges(struct random *random, enum pixel_format source)
{
    const long n = cases_from(600);
    for (long i = 0; i < n; i++) {
        struct picture picture = picture_random(source, 24, random);
        struct warp_params p;
        if (i % 2)
            p = filter_case(random, &picture.image, 40);
        else
            p = warp_case(random, (enum geometry)(i / 2 % GEOMETRIES), &picture.image, 40);
        p.edge = (enum edge)random_in(random, EDGE_BLEND, EDGE_REPEAT);
        if (i % 2 == 0 && random_in(random, 0, 1))
            p.filter = FILTER_NEAREST;
        const struct colour colour = colour_case(random);
        give_colour(random, colour, &p, &picture.image);
        check_levels(&p, &picture.image, colour);
        picture_free(&picture);
    }
}

// Nearest pixels, ties included, when one side is stretched to another.
static void test_nearest(struct random *random)
{
    for (int i = 0; i < 400; i++) {
        const int side_max = i % 4 ? 60 : 9000, n = random_in(random, 1, side_max);
        const int steps = random_in(random, 1, 6);
        struct picture picture = picture_sized(PIXEL_GRAY, i % 3 ? n : steps * 64, 1, random);
        struct warp_params p = {.scale = 1, .std = {1, 1, 1}, .height = 1};
        struct op op;
        p.width = i % 3 ? random_in(random, 1, side_max) : 64;
        p.order = ORDER_GRAY;
        p.fit = FIT_STRETCH;
        p.filter = FILTER_NEAREST;
        picture.image.colour.range = RANGE_FULL;
        CHECK(op_init(&op, &(struct op_params){OP_WARP, {.warp = p}}, &picture.image) == 0, "op");
        uint8_t *levels = run(&op, &picture.image);
        const int64_t from = picture.image.width;
        int wrong = 0;
        for (int x = 0; x < p.width; x++)
            wrong +=
                levels[x] != sample_get(&picture.image, 0, (2 * x + 1) * from / (2 * p.width), 0);
        CHECK(wrong == 0, "%d of %d to %d pixels", wrong, picture.image.width, p.width);
        free(levels);
        op_finish(&op);
        picture_free(&picture);
    }
}

// Rows above and below the picture hold element 0, whose bits are 0 in every type.
static void test_mean(struct random *random)
{
    for (int i = 0; i < 4 * 3; i++) {
        struct picture picture = picture_sized(PIXEL_BGR24, 40, 20, random);
        struct warp_params p = {.width = 64, .height = 64, .fit = FIT_ULTRALYTICS};
        struct op op;
        p.dtype = (enum dtype)(i % 4);
        p.order = (enum order)(i / 4);
        p.layout = LAYOUT_NHWC;
        p.scale = p.dtype < DTYPE_F16 ? 1.0 / 3 : 1.0 / 255;
        p.fill_mean = true;
        p.edge = EDGE_REPEAT;
        for (int c = 0; c < 3; c++) {
            p.mean[c] = (p.dtype < DTYPE_F16 ? 100.123 : 0.485) - c / 16.0;
            p.std[c] = 0.229;
        }
        CHECK(op_init(&op, &(struct op_params){OP_WARP, {.warp = p}}, &picture.image) == 0, "op");
        uint8_t *elements = run(&op, &picture.image);
        const size_t row = op.dst_bytes / 64;
        int set = 0, bars = 0;
        for (size_t k = 0; k < op.dst_bytes; k++)
            *(k / row < 16 || k / row >= 48 ? &bars : &set) |= elements[k];
        CHECK(bars == 0 && (set != 0 || p.dtype == DTYPE_U8), // u8 has no numbers below 0
              "dtype %d, order %d: bars %d, picture %d", p.dtype, p.order, bars, set);
        free(elements);
        op_finish(&op);
        picture_free(&picture);
    }
}

static double half_value(int bits) // of a finite, positive binary16
{
    const int exponent = bits >> 10, mantissa = bits & 1023;
    return exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
}

// Searches all numbers of the type.
static uint16_t half_nearest(double x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    int lo = 0, hi = 0x7c00; // half_value(0x7c00) is 65536, the reference for overflow
    while (hi - lo > 1) {
        const int middle = (lo + hi) / 2;
        if (half_value(middle) <= fabs(x))
            lo = middle;
        else
            hi = middle;
    }
    const double below = fabs(x) - half_value(lo), above = half_value(hi) - fabs(x);
    return (uint16_t)(sign | (below < above || (below == above && lo % 2 == 0) ? lo : hi));
}

static bool element_is(enum dtype dtype, const void *elements, size_t i, double x)
{
    switch (dtype) {
    case DTYPE_U8:
        return ((const uint8_t *)elements)[i] == bounded(half_up(x), 0, 255);
    case DTYPE_S8:
        return ((const int8_t *)elements)[i] == bounded(half_up(x), -128, 127);
    case DTYPE_F16:
        return ((const uint16_t *)elements)[i] == half_nearest(x);
    default:
        return ((const float *)elements)[i] == (float)x;
    }
}

static void check_elements(const struct warp_params *p, const struct image *src)
{
    char text[400];
    struct warp_params plain = *p;
    plain.dtype = DTYPE_U8;
    plain.scale = 1;
    for (int c = 0; c < 3; c++) {
        plain.mean[c] = 0;
        plain.std[c] = 1;
    }
    struct op op, plain_op;
    if (op_init(&op, &(struct op_params){OP_WARP, {.warp = *p}}, src) < 0 ||
        op_init(&plain_op, &(struct op_params){OP_WARP, {.warp = plain}}, src) < 0) {
        CHECK(false, "op_init: %s", warp_case_text(text, p, src));
        return;
    }
    uint8_t *levels = run(&plain_op, src);
    void *elements = run(&op, src);
    int wrong = 0;
    for (int c = 0; c < op.warp.channels; c++)
        for (int y = 0; y < p->height; y++)
            for (int x = 0; x < p->width; x++) {
                const size_t i = element_index(p, c, x, y);
                const double value = (levels[i] * p->scale - p->mean[c]) / p->std[c];
                wrong += !element_is(p->dtype, elements, i, value);
            }
    CHECK(wrong == 0, "%d: scale %g mean %g std %g: %s", wrong, p->scale, p->mean[0], p->std[0],
          warp_case_text(text, p, src));
    free(levels);
    free(elements);
    op_finish(&op);
    op_finish(&plain_op);
}

static void test_elements(struct random *random)
{
    // scale and mean that reach ties, the largest half, the smallest normal and the smallest
    static const double edges[][2] = {{1, -2048},   {-1, -65535},       {1, -65400},
                                      {0x1p-22, 0}, {0x1p-24, 0x1p-18}, {0x1p-25, 0}};
    struct picture picture = picture_new(PIXEL_RGB24, 64, 48, STRIDES_TIGHT);
    picture_fill(&picture.image, CONTENT_RANDOM, random);
    for (int i = 0; i < 200; i++) {
        struct warp_params p = warp_case(random, GEOMETRY_LETTERBOX, &picture.image, 80);
        tensor_case(random, &p);
        if (i % 4 == 0) { // from values that halves hold only as subnormals to values beyond halves
            const int exponent = random_in(random, -30, 12);
            p.scale = ldexp(random_real(random, -1, 1), exponent);
        }
        if (i % 8 == 0)
            memset(p.mean, 0, sizeof(p.mean));
        check_elements(&p, &picture.image);
    }
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        struct warp_params p = warp_case(random, GEOMETRY_STRETCH, &picture.image, 80);
        p.dtype = DTYPE_F16;
        p.scale = edges[i][0];
        for (int c = 0; c < 3; c++)
            p.mean[c] = edges[i][1];
        check_elements(&p, &picture.image);
    }
    picture_free(&picture);
}

// Float elements for common detectors may be computed without a table; integers may not.
static void test_summed(void)
{
    static const struct {
        double mean[3], std[3];
    } common[] = {{{0, 0, 0}, {1, 1, 1}}, {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}};
    const struct image src = {.format = PIXEL_NV12, .width = 8, .height = 8};
    for (int i = 0; i < 2; i++)
        for (int dtype = DTYPE_U8; dtype <= DTYPE_F32; dtype++) {
            struct warp_params p = {.width = 8, .height = 8, .scale = 1 / 255.0};
            struct op op;
            p.dtype = (enum dtype)dtype;
            memcpy(p.mean, common[i].mean, sizeof p.mean);
            memcpy(p.std, common[i].std, sizeof p.std);
            const int error = op_init(&op, &(struct op_params){OP_WARP, {.warp = p}}, &src);
            CHECK(error == 0 && op.warp.summed == (dtype == DTYPE_F16 || dtype == DTYPE_F32),
                  "%d: mean %g, dtype %d: %d", error, p.mean[0], dtype, op.warp.summed);
            op_finish(&op);
        }
}

// Values that leave nothing or next to nothing of the levels, or exceed the elements.
static void test_extremes(struct random *random)
{
    static const double scales[] = {0, 1e-320, 1, 1e50}, stds[] = {1, 1e300}, means[] = {0, 0.5};
    struct picture picture = picture_new(PIXEL_RGB24, 16, 16, STRIDES_TIGHT);
    picture_fill(&picture.image, CONTENT_RANDOM, random);
    for (int i = 0; i < 4 * 4 * 2 * 2; i++) {
        struct warp_params p = warp_case(random, GEOMETRY_STRETCH, &picture.image, 16);
        p.dtype = (enum dtype)(i % 4);
        p.scale = scales[i / 4 % 4];
        for (int c = 0; c < 3; c++) {
            p.std[c] = stds[i / 16 % 2];
            p.mean[c] = means[i / 32];
        }
        check_elements(&p, &picture.image);
    }
    picture_free(&picture);
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    printf("warp: seed %llu\n", (unsigned long long)random.state);
    const long rounds = 1 + cases_from(3 * ROUND) / ROUND;
    for (int source = 0; source < SOURCES; source++) {
        for (long i = 0; i < rounds; i++)
            TEST(test_colours(&random, sources[source]));
        TEST(test_large(&random, sources[source]));
        TEST(test_filters(&random, sources[source]));
        TEST(test_edges(&random, sources[source]));
    }
    TEST(test_nearest(&random));
    TEST(test_mean(&random));
    TEST(test_elements(&random));
    TEST(test_summed());
    TEST(test_extremes(&random));
    return test_end();
}
