// Tests colour look-up tables: a pixel against interpolation in double, and the warp of every
// version that this CPU runs against the pixel, byte by byte.
//
// usage: lut [SEED]
#include <errno.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/versions.h"
#include "tests/kernels/picture.h"
#include "tests/test.h"

enum { CUBES = 60, COLOURS = 20000 };

// Kinds of a cube's levels. Neighbours in EXTREME cubes are 0 and 1.
enum nodes { NODES_IDENTITY, NODES_INVERSE, NODES_LEVELS, NODES_ANY, NODES_EXTREME, NODES };

struct cube {
    struct lut_params params;
    float *nodes, *curve;
    struct lut *lut;
};

static float node_case(enum nodes kind, double identity, struct random *random)
{
    const double any = random_in(random, 0, 1 << 20) / 0x1p20;
    switch (kind) {
    case NODES_IDENTITY:
        return (float)identity;
    case NODES_INVERSE:
        return (float)(1 - identity);
    case NODES_LEVELS:
        return (float)random_in(random, 0, 255) / 255;
    case NODES_ANY:
        return (float)(any * 1.2 - 0.1);
    default:
        return (float)random_in(random, 0, 1);
    }
}

static void cube_init(struct cube *cube, int points, enum nodes kind, struct random *random)
{
    const size_t n = (size_t)points * points * points;
    *cube = (struct cube){.params = {.points = points}};
    cube->nodes = malloc(3 * n * sizeof *cube->nodes);
    for (size_t i = 0; i < n; i++) {
        const size_t at[3] = {i % points, i / points % points, i / points / points};
        for (int c = 0; c < 3; c++)
            cube->nodes[3 * i + c] = node_case(kind, at[c] / (points - 1.0), random);
    }
    cube->params.nodes = cube->nodes;
    for (int c = 0; c < 3; c++)
        cube->params.last[c] = cube->params.curve_last[c] = 1;
}

static void curve_init(struct cube *cube, int points, struct random *random)
{
    cube->curve = malloc(3 * (size_t)points * sizeof *cube->curve);
    for (int i = 0; i < 3 * points; i++)
        cube->curve[i] = node_case(NODES_ANY, 0, random);
    cube->params.curve = cube->curve;
    cube->params.curve_points = points;
}

static void cube_make(struct cube *cube)
{
    const int error = lut_make(&cube->lut, &cube->params);
    CHECK(error == 0, "%d", error);
}

static void cube_finish(struct cube *cube)
{
    lut_unref(cube->lut);
    free(cube->nodes);
    free(cube->curve);
}

static struct cube cube_case(struct random *random)
{
    static const int sizes[] = {2, 3, 5, 17, 33, 64, 65};
    struct cube cube;
    cube_init(&cube, sizes[random_in(random, 0, 6)], (enum nodes)random_in(random, 0, NODES - 1),
              random);
    cube.params.interpolation = (enum lut_interpolation)random_in(random, 0, 1);
    if (random_in(random, 0, 2) == 0)
        curve_init(&cube, random_in(random, 2, 40), random);
    for (int c = 0; random_in(random, 0, 2) == 0 && c < 3; c++) {
        cube.params.first[c] = cube.params.curve_first[c] = random_in(random, -4, 3) / 10.0;
        cube.params.last[c] = cube.params.curve_last[c] = random_in(random, 6, 14) / 10.0;
    }
    cube_make(&cube);
    return cube;
}

// --- in double

static double clamped(double x)
{
    return fmin(fmax(x, 0), 1);
}

static double input_of(const struct lut_params *p, int c, int level)
{
    double x = level / 255.0;
    if (p->curve_points == 0)
        return clamped((x - p->first[c]) / (p->last[c] - p->first[c]));
    x = clamped((x - p->curve_first[c]) / (p->curve_last[c] - p->curve_first[c])) *
        (p->curve_points - 1);
    const int i = (int)fmin(floor(x), p->curve_points - 2);
    const double near = (double)p->curve[3 * i + c], far = (double)p->curve[3 * i + 3 + c];
    x = near * (1 - (x - i)) + far * (x - i);
    return p->points == 0 ? clamped(x) : clamped((x - p->first[c]) / (p->last[c] - p->first[c]));
}

static double node_of(const struct lut_params *p, const int cell[3], int corner, int c)
{
    const int r = cell[0] + (corner >> 2), g = cell[1] + (corner >> 1 & 1);
    const int b = cell[2] + (corner & 1);
    const size_t node = ((size_t)b * p->points + g) * p->points + r;
    return clamped((double)p->nodes[3 * node + c]);
}

// Returns the weight of a corner. Its bits mark the axes on which it is far; red has the highest.
static double weight_of(const double at[3], int corner, enum lut_interpolation interpolation)
{
    double product = 1, least = 1, largest = 0;
    for (int c = 0; c < 3; c++) {
        const bool far = corner >> (2 - c) & 1;
        product *= far ? at[c] : 1 - at[c];
        if (far)
            least = fmin(least, at[c]);
        else
            largest = fmax(largest, at[c]);
    }
    return interpolation == LUT_TRILINEAR ? product : fmax(least - largest, 0);
}

// Returns level c of a pixel, unrounded.
static double definition(const struct lut_params *p, const uint8_t from[3], int c)
{
    int cell[3];
    double at[3], sum = 0;
    if (p->points == 0)
        return 255 * input_of(p, c, from[c]);
    for (int i = 0; i < 3; i++) {
        const double x = input_of(p, i, from[i]) * (p->points - 1);
        cell[i] = (int)fmin(floor(x), p->points - 2);
        at[i] = x - cell[i];
    }
    for (int corner = 0; corner < 8; corner++)
        sum += weight_of(at, corner, p->interpolation) * node_of(p, cell, corner, c);
    return 255 * sum;
}

static void colour_case(uint8_t rgb[3], struct random *random)
{
    for (int c = 0; c < 3; c++) {
        const int pick = random_in(random, 0, 9);
        rgb[c] = (uint8_t)(pick == 0 ? 0 : pick == 1 ? 255 : random_in(random, 0, 255));
    }
}

static double farthest(const struct cube *cube, struct random *random)
{
    double worst = 0;
    for (int i = 0; i < COLOURS; i++) {
        uint8_t from[3], to[3];
        colour_case(from, random);
        memcpy(to, from, sizeof to);
        lut_pixel(cube->lut, to);
        for (int c = 0; c < 3; c++)
            worst = fmax(worst, fabs(to[c] - definition(&cube->params, from, c)));
    }
    return worst;
}

// Whole levels at the nodes leave only the result's rounding and the error of 14-bit weights.
static void test_definition(struct random *random)
{
    static const double bound[NODES] = {0.6, 0.6, 0.6, 1.1, 0.6};
    for (int i = 0; i < 2 * NODES; i++) {
        static const int sizes[NODES] = {2, 16, 17, 33, 65};
        struct cube cube;
        const enum nodes kind = (enum nodes)(i % NODES);
        cube_init(&cube, sizes[random_in(random, 0, NODES - 1)], kind, random);
        if (kind < NODES_LEVELS) { // only these points make the nodes whole levels
            cube_finish(&cube);
            cube_init(&cube, random_in(random, 0, 1) ? 52 : 16, kind, random);
        }
        cube.params.interpolation = (enum lut_interpolation)(i / NODES);
        cube_make(&cube);
        const double worst = farthest(&cube, random);
        CHECK(worst < bound[kind], "%d points, nodes %d, interpolation %d: off by %g levels",
              cube.params.points, kind, i / NODES, worst);
        cube_finish(&cube);
    }
    for (int i = 0; i < CUBES; i++) {
        struct cube cube = cube_case(random);
        const double worst = farthest(&cube, random);
        CHECK(worst < 1.1, "cube %d, of %d points and %d of a curve: off by %g levels", i,
              cube.params.points, cube.params.curve_points, worst);
        cube_finish(&cube);
    }
}

static void test_curves(struct random *random)
{
    for (int points = 2; points <= LUT_CURVE_POINTS_MAX; points *= 2) {
        struct cube cube = {.params = {.curve_last = {1, 1, 1}}};
        curve_init(&cube, points, random);
        cube_make(&cube);
        const double worst = farthest(&cube, random);
        CHECK(worst < 0.6, "%d points: off by %g levels", points, worst);
        cube_finish(&cube);
    }
}

// Exact for any number of points where points - 1 divides 255, else within one level.
static void test_identity(struct random *random)
{
    for (int points = LUT_POINTS_MIN; points <= LUT_POINTS_MAX; points++) {
        struct cube cube;
        int wrong = 0;
        cube_init(&cube, points, points % 2 ? NODES_IDENTITY : NODES_INVERSE, random);
        cube.params.interpolation = (enum lut_interpolation)(points / 2 % 2);
        cube_make(&cube);
        for (int level = 0; level < 256; level++) {
            uint8_t to[3] = {(uint8_t)level, (uint8_t)level, (uint8_t)level};
            lut_pixel(cube.lut, to);
            for (int c = 0; c < 3; c++)
                wrong += abs(to[c] - (points % 2 ? level : 255 - level)) > (255 % (points - 1) > 0);
        }
        CHECK(wrong == 0, "%d points: %d levels are others", points, wrong);
        cube_finish(&cube);
    }
}

// --- versions, inside the warp

// Compares every version with lut_pixel, for an RGB24 picture warped at its own size.
static void check_warp(const struct lut *lut, const struct picture *picture, int number)
{
    const struct image *src = &picture->image;
    struct op_params params = {OP_WARP, {.warp = {.scale = 1, .std = {1, 1, 1}, .lut = lut}}};
    params.warp.width = src->width;
    params.warp.height = src->height;
    params.warp.layout = LAYOUT_NHWC;
    struct op op;
    struct image dst;
    const int error = op_init(&op, &params, src);
    CHECK(error == 0, "%d", error);
    if (error)
        return;
    uint8_t *expected = malloc(op.dst_bytes), *got = malloc(op.dst_bytes);
    for (int y = 0, at = 0; y < src->height; y++)
        for (int x = 0; x < src->width; x++, at += 3) {
            memcpy(expected + at, sample_address(src, 0, x, y), 3);
            lut_pixel(lut, expected + at);
        }
    op_lay_out(&op, &dst, got);
    for (int i = 0; versions[i]; i++) {
        if (!versions[i]->runs())
            continue;
        memset(got, UNTOUCHED, op.dst_bytes);
        versions[i]->run[OP_WARP](&dst, src, &op, (struct band){0, src->height}, false);
        CHECK(memcmp(got, expected, op.dst_bytes) == 0, "%s: cube %d, of %d points: %dx%d",
              versions[i]->name, number, lut->points, src->width, src->height);
    }
    free(got);
    free(expected);
    op_finish(&op);
}

static void test_versions(struct random *random)
{
    for (int i = 0; i < CUBES; i++) {
        struct cube cube = cube_case(random);
        struct picture picture = picture_sized(PIXEL_RGB24, random_in(random, 1, 700), 9, random);
        check_warp(cube.lut, &picture, i);
        picture_free(&picture);
        cube_finish(&cube);
    }
}

// Tests all colours, with cubes with and without linear axes.
static void test_all_colours(struct random *random)
{
    enum { SIDE = 256 };
    struct picture picture = picture_new(PIXEL_RGB24, SIDE, SIDE, STRIDES_TIGHT);
    for (int i = 0; i < 4; i++) {
        struct cube cube;
        cube_init(&cube, 33, NODES_EXTREME, random);
        cube.params.interpolation = (enum lut_interpolation)(i % 2);
        cube.params.first[1] = i / 2 * 0.1;
        cube_make(&cube);
        for (int red = i; red < 256; red += 16) {
            for (int k = 0; k < SIDE * SIDE; k++)
                memcpy(sample_address(&picture.image, 0, k % SIDE, k / SIDE),
                       (uint8_t[]){(uint8_t)red, (uint8_t)(k >> 8), (uint8_t)k}, 3);
            check_warp(cube.lut, &picture, i);
        }
        cube_finish(&cube);
    }
    picture_free(&picture);
}

// --- limits

static void check_refused(struct lut_params params, const char *why)
{
    struct lut *lut = NULL;
    const int error = lut_make(&lut, &params);
    CHECK(error == -EINVAL, "%s: %d", why, error);
}

static void test_limits(struct random *random)
{
    struct cube cube;
    cube_init(&cube, 2, NODES_ANY, random);
    struct lut_params params = cube.params;
    params.points = 1;
    check_refused(params, "one point");
    params.points = LUT_POINTS_MAX + 1;
    check_refused(params, "too many points");
    params.points = 0;
    check_refused(params, "nothing");
    params.curve_points = LUT_CURVE_POINTS_MAX + 1;
    check_refused(params, "too long a curve");
    params = cube.params;
    params.first[2] = 1;
    check_refused(params, "an empty range");
    cube_finish(&cube);
}

static void test_equal(struct random *random)
{
    struct cube a, b;
    cube_init(&a, 3, NODES_IDENTITY, random);
    cube_init(&b, 3, NODES_IDENTITY, random);
    cube_make(&a);
    cube_make(&b);
    CHECK(lut_equal(a.lut, b.lut), "the same numbers");
    CHECK(!lut_equal(a.lut, NULL) && lut_equal(NULL, NULL), "none");
    lut_unref(b.lut);
    b.nodes[80] = 0.5f;
    cube_make(&b);
    CHECK(!lut_equal(a.lut, b.lut), "another node");
    lut_unref(b.lut);
    b.nodes[80] = 1;
    b.params.interpolation = LUT_TETRAHEDRAL;
    cube_make(&b);
    CHECK(!lut_equal(a.lut, b.lut), "another interpolation");
    cube_finish(&a);
    cube_finish(&b);
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    TEST(test_definition(&random));
    TEST(test_curves(&random));
    TEST(test_identity(&random));
    TEST(test_versions(&random));
    TEST(test_all_colours(&random));
    TEST(test_limits(&random));
    TEST(test_equal(&random));
    return test_end();
}
