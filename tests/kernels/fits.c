// Fits to whole pixels: the matrices that they give, beside what Python makes of the same formulas.
#include <math.h>

#include "tests/test.h"

#include "kernels/ops.h"
#include "tests/kernels/picture.h"

static const enum fit fits[] = {FIT_ULTRALYTICS, FIT_YOLOX, FIT_MMDET};

enum { FITS = sizeof fits / sizeof *fits };

// Where the picture lies in the tensor, as scaling and one offset put it there: positions are those
// of pixel centres.
static void expect_picture_at(const struct warp_params *params, const struct image *src,
                              struct rect at)
{
    const double sx = (double)at.width / src->width, sy = (double)at.height / src->height;
    const double expected[6] = {sx, 0, at.x + sx / 2 - 0.5, 0, sy, at.y + sy / 2 - 0.5};
    double m[6];
    const int error = warp_src_to_dst(params, src, m);
    bool equal = error == 0;
    for (int i = 0; equal && i < 6; i++)
        equal = fabs(m[i] - expected[i]) < 1e-9;
    CHECK(equal,
          "%d: fit %d of %dx%d in %dx%d: %.12g %.12g %.12g %.12g, not %.12g %.12g %.12g %.12g",
          error, params->fit, src->width, src->height, params->width, params->height, m[0], m[2],
          m[4], m[5], expected[0], expected[2], expected[4], expected[5]);
}

// Python 3 computed these: int(round(x)), int(x) and int(x + 0.5) of the sides times the scale.
static void test_pictures_of_python(void)
{
    static const struct {
        int source_width, source_height, width, height;
        struct rect at[FITS];
    } rows[] = {
        {1920, 1080, 640, 640, {{0, 140, 640, 360}, {0, 0, 640, 360}, {0, 0, 640, 360}}},
        {1080, 1920, 640, 640, {{140, 0, 360, 640}, {0, 0, 360, 640}, {0, 0, 360, 640}}},
        {3840, 2160, 640, 640, {{0, 140, 640, 360}, {0, 0, 640, 360}, {0, 0, 640, 360}}},
        {2592, 1520, 640, 640, {{0, 132, 640, 375}, {0, 0, 640, 375}, {0, 0, 640, 375}}},
        {2688, 1520, 640, 640, {{0, 139, 640, 362}, {0, 0, 640, 361}, {0, 0, 640, 362}}},
        {3632, 1632, 640, 640, {{0, 176, 640, 288}, {0, 0, 640, 287}, {0, 0, 640, 288}}},
        {704, 576, 640, 640, {{0, 58, 640, 524}, {0, 0, 640, 523}, {0, 0, 640, 524}}},
        {1279, 719, 640, 640, {{0, 140, 640, 360}, {0, 0, 640, 359}, {0, 0, 640, 360}}},
        {768, 111, 640, 640, {{0, 274, 640, 92}, {0, 0, 640, 92}, {0, 0, 640, 93}}},
        {3, 1, 641, 640, {{0, 213, 641, 214}, {0, 0, 641, 213}, {0, 0, 641, 214}}},
        {853, 480, 1280, 736, {{0, 8, 1280, 720}, {0, 0, 1280, 720}, {0, 0, 1280, 720}}},
        // 623 * (640 / 623) is a little less than 640.
        {623, 623, 640, 640, {{0, 0, 640, 640}, {0, 0, 639, 639}, {0, 0, 640, 640}}},
        // Python has no pixel left of these, and its resize fails.
        {4000, 1, 640, 640, {{0, 319, 640, 1}, {0, 0, 640, 1}, {0, 0, 640, 1}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct image src = {.width = rows[i].source_width, .height = rows[i].source_height};
        struct warp_params p = {.width = rows[i].width, .height = rows[i].height};
        for (int f = 0; f < FITS; f++) {
            p.fit = fits[f];
            expect_picture_at(&p, &src, rows[i].at[f]);
        }
    }
}

static int rounded_half_even(double x)
{
    const double down = floor(x), left = x - down;
    return (int)down + (left > 0.5 || (left == 0.5 && fmod(down, 2) != 0));
}

static struct rect picture_in(enum fit fit, int source_width, int source_height, int width,
                              int height)
{
    const double across = (double)width / source_width, down = (double)height / source_height;
    const double w = source_width * (across < down ? across : down);
    const double h = source_height * (across < down ? across : down);
    struct rect at = {0, 0, (int)w, (int)h};
    if (fit == FIT_MMDET)
        at = (struct rect){0, 0, (int)(w + 0.5), (int)(h + 0.5)};
    if (fit == FIT_ULTRALYTICS)
        at = (struct rect){0, 0, rounded_half_even(w), rounded_half_even(h)};
    at.width += at.width == 0;
    at.height += at.height == 0;
    if (fit == FIT_ULTRALYTICS) {
        at.x = rounded_half_even((width - at.width) / 2.0 - 0.1);
        at.y = rounded_half_even((height - at.height) / 2.0 - 0.1);
    }
    return at;
}

static void test_all_sizes(struct random *random)
{
    for (int i = 0; i < 30000; i++) {
        const int side_max = i % 3 ? 4096 : 64;
        struct image src = {.width = random_in(random, 1, side_max)};
        src.height = random_in(random, 1, side_max);
        struct warp_params p = {.fit = fits[i % FITS], .width = 32 * random_in(random, 1, 60)};
        p.height = i % 2 ? p.width : random_in(random, 1, 2000);
        expect_picture_at(&p, &src, picture_in(p.fit, src.width, src.height, p.width, p.height));
    }
}

// A turned, mirrored or cropped picture lies where an upright one of its size would.
static void test_turned_and_cropped(struct random *random)
{
    for (int i = 0; i < 3000; i++) {
        struct image src = {.width = random_in(random, 2, 3000)};
        src.height = random_in(random, 2, 3000);
        src.orientation = (enum orientation)(i % (2 * ORIENTATION_MIRRORED));
        struct warp_params p = {.fit = fits[i % FITS], .width = 640, .height = 384};
        p.rotate = 90 * random_in(random, -4, 4);
        p.flip = (enum flip)random_in(random, FLIP_NONE, FLIP_BOTH);
        p.crop = (struct rect){1, 0, src.width / 2, src.height / 2};
        const int quarters = src.orientation % ORIENTATION_MIRRORED + (int)(p.rotate / 90) + 4;
        const bool sideways = quarters % 2;
        const struct rect at = picture_in(p.fit, sideways ? p.crop.height : p.crop.width,
                                          sideways ? p.crop.width : p.crop.height, 640, 384);
        double m[6];
        CHECK(warp_src_to_dst(&p, &src, m) == 0, "warp_src_to_dst");
        // Opposite corners of the crop, counted from the edges of pixels.
        double x[2], y[2];
        for (int corner = 0; corner < 2; corner++) {
            const double sx = p.crop.x + corner * p.crop.width - 0.5;
            const double sy = p.crop.y + corner * p.crop.height - 0.5;
            x[corner] = m[0] * sx + m[1] * sy + m[2] + 0.5;
            y[corner] = m[3] * sx + m[4] * sy + m[5] + 0.5;
        }
        CHECK(fabs(fmin(x[0], x[1]) - at.x) < 1e-9 && fabs(fmin(y[0], y[1]) - at.y) < 1e-9 &&
                  fabs(fabs(x[1] - x[0]) - at.width) < 1e-9 &&
                  fabs(fabs(y[1] - y[0]) - at.height) < 1e-9,
              "fit %d of %dx%d, orientation %d, rotate %g: from (%g, %g) to (%g, %g), not %dx%d at "
              "(%d, %d)",
              p.fit, p.crop.width, p.crop.height, src.orientation, p.rotate, x[0], y[0], x[1], y[1],
              at.width, at.height, at.x, at.y);
    }
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    printf("fits: seed %llu\n", (unsigned long long)random.state);
    TEST(test_pictures_of_python());
    TEST(test_all_sizes(&random));
    TEST(test_turned_and_cropped(&random));
    return test_end();
}
