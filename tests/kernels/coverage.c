// Tests that coverage, the product of both axes, is rounded half up if both see only a part of the
// picture: in fixed.h, and in the bytes of every version and backend. A white source of 2x2 pixels
// is enlarged so far that thousands of output pixels are on its corners; one unit of coverage more
// or less changes dozens of them.
#include "tests/test.h"

#include "kernels/cpu/versions.h"
#include "kernels/fixed.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/definition.h"

enum { SIDE = 2 };

// Factors of enlargement, with the source in the middle of the result.
static const struct {
    const char *name;
    double affine[4];
    bool ties; // every product is halfway between two units of coverage
} cases[] = {
    {"straight", {61.3, 0, 0, 83.9}, false},
    {"ties", {64, 0, 0, 128}, true},
    {"turned", {70, -19, 23, 66}, false},
};
enum { NCASES = sizeof cases / sizeof *cases, WIDTH = 256, HEIGHT = 384 };

static void test_arithmetic(void)
{
    int wrong = 0;
    for (int cx = 0; cx <= WEIGHT_ONE; cx++)
        for (int cy = cx & 31; cy <= WEIGHT_ONE; cy += 32)
            wrong += coverage_of(cx, cy) != half_up((double)cx * cy / WEIGHT_ONE);
    CHECK(wrong == 0, "%d products are rounded otherwise than half up", wrong);
}

// --- the level of a pixel that is partly white, the rest black

static int level_at(double coverage)
{
    return (int)half_up(255 * coverage / WEIGHT_ONE);
}

// Returns the unrounded product of both axes at an output pixel, in units of coverage.
static double product_at(const struct warp *warp, int x, int y)
{
    const int32_t sx = warp->colx[x] + warp->rowx[y], sy = warp->coly[x] + warp->rowy[y];
    const double unit = WEIGHT_ONE, px = (sx + 2) >> 2, py = (sy + 2) >> 2;
    return covered(px / unit, 0, SIDE) * covered(py / unit, 0, SIDE) * unit;
}

// Numbers of pixels whose level would change with another rounding of the coverage.
struct told {
    int up, down, half_down;
};

// Computes one channel of the result.
static struct told expect(const struct warp *warp, uint8_t level[HEIGHT][WIDTH])
{
    struct told told = {0};
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            const double product = product_at(warp, x, y);
            level[y][x] = (uint8_t)level_at(half_up(product));
            told.up += level_at(ceil(product)) != level[y][x];
            told.down += level_at(floor(product)) != level[y][x];
            told.half_down += level_at(ceil(product - 0.5)) != level[y][x];
        }
    return told;
}

static struct picture white(enum pixel_format format)
{
    struct picture picture = picture_new(format, SIDE, SIDE, STRIDES_TIGHT);
    const int none = is_10bit(format) ? 512 : 128;
    struct random random = {0};
    picture_fill(&picture.image, CONTENT_MAX, &random);
    for (int c = 1; c < components(format) && !source_is_rgb(format); c++)
        for (int i = 0; i < SIDE * SIDE; i++)
            if (i % SIDE < component_width(&picture.image, c) &&
                i / SIDE < component_height(&picture.image, c))
                sample_put(&picture.image, c, i % SIDE, i / SIDE, none, 0);
    return picture;
}

static void check_result(const uint8_t *got, const uint8_t level[HEIGHT][WIDTH], const char *who,
                         const char *what, enum pixel_format format)
{
    int wrong = 0;
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                wrong += got[(c * HEIGHT + y) * WIDTH + x] != level[y][x];
    CHECK(wrong == 0, "%s, %s, %s: %d levels differ", who, pixel_format_name(format), what, wrong);
}

static void run_setting(const struct setting *setting, struct backend *backend, const struct op *op,
                        const struct image *src, uint8_t *result)
{
    struct plan *plan;
    struct tally tally = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    struct job_result results[] = {{.data = result}};
    struct job job = {
        .src = *src, .results = results, .n = 1, .done = tally_done, .opaque = &tally};
    const int error = setting->driver->plan_open(backend, &plan, src, &op, 1, 1);
    CHECK(error == 0, "plan_open: %d: %s", error, setting->name);
    if (error)
        return;
    if (setting->driver->submit(plan, &job) == 0)
        tally_wait(&tally, 1);
    setting->driver->plan_close(plan);
    CHECK(tally.done == 1 && tally.failed == 0, "%s: %d done", setting->name, tally.done);
}

static void check_case(int which, enum pixel_format format, struct backend *const backends[])
{
    static uint8_t level[HEIGHT][WIDTH], result[3 * HEIGHT * WIDTH];
    const double *m = cases[which].affine;
    const double x = WIDTH / 2.0 - (m[0] + m[1]) / 2, y = HEIGHT / 2.0 - (m[2] + m[3]) / 2;
    const struct warp_params params = {.width = WIDTH,
                                       .height = HEIGHT,
                                       .has_affine = true,
                                       .affine = {m[0], m[1], x - 0.5, m[2], m[3], y - 0.5},
                                       .scale = 1,
                                       .std = {1, 1, 1}};
    struct picture source = white(format);
    struct op op;
    const int error = op_init(&op, &(struct op_params){OP_WARP, {.warp = params}}, &source.image);
    CHECK(error == 0, "%d: %s", error, cases[which].name);
    const struct told told = expect(&op.warp, level);
    CHECK(told.down > 20 && (cases[which].ties ? told.half_down : told.up) > 20,
          "%s: pixels that tell another rounding: %d up, %d down, %d half down", cases[which].name,
          told.up, told.down, told.half_down);
    for (int i = 0; versions[i]; i++) {
        struct image dst;
        if (!versions[i]->runs())
            continue;
        memset(result, UNTOUCHED, sizeof result);
        op_lay_out(&op, &dst, result);
        versions[i]->run[OP_WARP](&dst, &source.image, &op, (struct band){0, HEIGHT}, false);
        check_result(result, level, versions[i]->name, cases[which].name, format);
    }
    for (int i = 0; i < SETTINGS; i++) {
        if (!backends[i])
            continue;
        memset(result, UNTOUCHED, sizeof result);
        run_setting(&settings[i], backends[i], &op, &source.image, result);
        check_result(result, level, settings[i].name, cases[which].name, format);
    }
    op_finish(&op);
    picture_free(&source);
}

int main(void)
{
    struct backend *backends[SETTINGS];
    int missing = 0;
    for (int i = 0; i < SETTINGS; i++)
        backends[i] = setting_open(&settings[i], &missing);
    TEST(test_arithmetic());
    for (int which = 0; which < NCASES; which++)
        for (int i = 0; i < SOURCES; i++)
            TEST(check_case(which, sources[i], backends));
    for (int i = 0; i < SETTINGS; i++)
        if (backends[i])
            settings[i].driver->close(backends[i]);
    for (int i = 0; versions[i]; i++)
        if (!versions[i]->runs())
            SKIP("%s: not on this CPU", versions[i]->name);
    if (missing)
        SKIP("%d settings: no CUDA device", missing);
    return test_end();
}
