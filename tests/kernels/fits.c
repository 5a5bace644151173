// Tests fits to whole pixels: their matrices against Python's results for the same formulas.
#include <math.h>

#include "tests/test.h"

#include "kernels/ops.h"
#include "tests/kernels/picture.h"

static const enum fit fits[] = {FIT_ULTRALYTICS, FIT_YOLOX, FIT_MMDET};

// Checks that the picture is at `at` in the tensor, by scale and offset; positions are those of
// pixel centres.
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

// Computed by Python 3: int(round(x)), int(x) and int(x + 0.5) of the sides times the scale.
static void test_pictures_of_python(void)
{
    static const struct {
        int source_width, source_height, width, height;
        struct rect at[3];
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
        // Python gets zero rows here, and its resize fails.
        {4000, 1, 640, 640, {{0, 319, 640, 1}, {0, 0, 640, 1}, {0, 0, 640, 1}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct image src = {.width = rows[i].source_width, .height = rows[i].source_height};
        struct warp_params p = {.width = rows[i].width, .height = rows[i].height};
        for (int f = 0; f < 3; f++) {
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
        struct warp_params p = {.fit = fits[i % 3], .width = 32 * random_in(random, 1, 60)};
        p.height = i % 2 ? p.width : random_in(random, 1, 2000);
        expect_picture_at(&p, &src, picture_in(p.fit, src.width, src.height, p.width, p.height));
    }
}

// A rotated, mirrored or cropped picture is where an upright one of its size would be.
static void test_turned_and_cropped(struct random *random)
{
    for (int i = 0; i < 3000; i++) {
        struct image src = {.width = random_in(random, 2, 3000)};
        src.height = random_in(random, 2, 3000);
        src.orientation = (enum orientation)(i % (2 * ORIENTATION_MIRRORED));
        struct warp_params p = {.fit = fits[i % 3], .width = 640, .height = 384};
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

// The rows of torchvision come from PyTorch and torchvision, the others from Python.
static void test_tensors_of_python(void)
{
    static const struct {
        enum fit fit;
        int source_width, source_height, width, height, stride;
        bool shrink_only;
        int tensor_width, tensor_height;
        struct rect at;
    } rows[] = {
        {FIT_RECT, 1920, 1080, 640, 640, 32, false, 640, 384, {0, 12, 640, 360}},
        {FIT_RECT, 1080, 1920, 640, 640, 32, false, 384, 640, {12, 0, 360, 640}},
        {FIT_RECT, 2592, 1520, 640, 640, 32, false, 640, 384, {0, 4, 640, 375}},
        {FIT_RECT, 704, 576, 640, 640, 32, false, 640, 544, {0, 10, 640, 524}},
        {FIT_RECT, 100, 75, 640, 640, 32, false, 640, 480, {0, 0, 640, 480}},
        {FIT_RECT, 3632, 1632, 640, 640, 32, false, 640, 288, {0, 0, 640, 288}},
        {FIT_RECT, 1279, 719, 640, 640, 32, false, 640, 384, {0, 12, 640, 360}},
        {FIT_RECT, 1280, 720, 640, 640, 32, false, 640, 384, {0, 12, 640, 360}},
        {FIT_RECT, 4000, 300, 640, 640, 32, false, 640, 64, {0, 8, 640, 48}},
        {FIT_RECT, 1920, 1080, 1280, 1280, 64, false, 1280, 768, {0, 24, 1280, 720}},
        {FIT_RECT, 100, 75, 640, 640, 32, true, 128, 96, {14, 10, 100, 75}},
        {FIT_ULTRALYTICS, 100, 75, 640, 640, 0, true, 640, 640, {270, 282, 100, 75}},
        {FIT_ULTRALYTICS, 1920, 1080, 640, 640, 0, true, 640, 640, {0, 140, 640, 360}},
        {FIT_TORCHVISION, 1920, 1080, 1333, 800, 32, false, 1344, 768, {0, 0, 1333, 749}},
        {FIT_TORCHVISION, 1080, 1920, 1333, 800, 32, false, 768, 1344, {0, 0, 749, 1333}},
        {FIT_TORCHVISION, 2592, 1520, 1333, 800, 32, false, 1344, 800, {0, 0, 1333, 781}},
        {FIT_TORCHVISION, 704, 576, 1333, 800, 32, false, 992, 800, {0, 0, 977, 800}},
        {FIT_TORCHVISION, 100, 75, 1333, 800, 32, false, 1088, 800, {0, 0, 1066, 800}},
        {FIT_TORCHVISION, 3632, 1632, 1333, 800, 32, false, 1344, 608, {0, 0, 1332, 598}},
        {FIT_TORCHVISION, 1279, 719, 1333, 800, 32, false, 1344, 768, {0, 0, 1332, 749}},
        {FIT_TORCHVISION, 1280, 720, 1333, 800, 32, false, 1344, 768, {0, 0, 1333, 749}},
        {FIT_TORCHVISION, 4000, 300, 1333, 800, 32, false, 1344, 128, {0, 0, 1333, 99}},
        {FIT_DEEPSTREAM, 1920, 1080, 640, 640, 0, false, 640, 640, {0, 0, 640, 360}},
        {FIT_DEEPSTREAM, 1080, 1920, 640, 640, 0, false, 640, 640, {0, 0, 360, 640}},
        {FIT_DEEPSTREAM, 2592, 1520, 640, 640, 0, false, 640, 640, {0, 0, 640, 375}},
        {FIT_DEEPSTREAM, 704, 576, 640, 640, 0, false, 640, 640, {0, 0, 640, 523}},
        {FIT_DEEPSTREAM, 100, 76, 640, 640, 0, false, 640, 640, {0, 0, 640, 486}},
        {FIT_DEEPSTREAM, 3632, 1632, 640, 640, 0, false, 640, 640, {0, 0, 640, 287}},
        {FIT_DEEPSTREAM_SYMMETRIC, 1920, 1080, 640, 640, 0, false, 640, 640, {0, 140, 640, 360}},
        {FIT_DEEPSTREAM_SYMMETRIC, 1080, 1920, 640, 640, 0, false, 640, 640, {140, 0, 360, 640}},
        {FIT_DEEPSTREAM_SYMMETRIC, 2592, 1520, 640, 640, 0, false, 640, 640, {0, 132, 640, 375}},
        {FIT_DEEPSTREAM_SYMMETRIC, 704, 576, 640, 640, 0, false, 640, 640, {0, 58, 640, 523}},
        {FIT_DEEPSTREAM_SYMMETRIC, 100, 76, 640, 640, 0, false, 640, 640, {0, 77, 640, 486}},
        {FIT_DEEPSTREAM_SYMMETRIC, 3632, 1632, 640, 640, 0, false, 640, 640, {0, 176, 640, 287}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct image src = {
            .format = PIXEL_NV12, .width = rows[i].source_width, .height = rows[i].source_height};
        struct op_params params = {.kind = OP_WARP};
        params.warp = (struct warp_params){.width = rows[i].width,
                                           .height = rows[i].height,
                                           .fit = rows[i].fit,
                                           .stride = rows[i].stride,
                                           .shrink_only = rows[i].shrink_only,
                                           .scale = 1,
                                           .std = {1, 1, 1}};
        expect_picture_at(&params.warp, &src, rows[i].at);
        struct op op;
        const int error = op_init(&op, &params, &src);
        CHECK(error == 0, "row %zu: %d", i, error);
        if (error)
            continue;
        CHECK(op.dst.width == rows[i].tensor_width && op.dst.height == rows[i].tensor_height,
              "fit %d of %dx%d: %dx%d", rows[i].fit, src.width, src.height, op.dst.width,
              op.dst.height);
        CHECK(op.dst_bytes == (size_t)3 * op.dst.width * op.dst.height, "%zu", op.dst_bytes);
        op_finish(&op);
    }
}

// OpenCV scales by the float and crops at whole pixels: 333 columns times 0.5 become 166, because
// halves round to even.
static void test_opencv_crop(void)
{
    static const struct {
        int source_width, source_height, width, height, left, top;
    } rows[] = {
        {100, 75, 224, 168, 0, 0},     {2592, 1520, 224, 224, 79, 0}, {1919, 1120, 224, 224, 80, 0},
        {1120, 1919, 224, 224, 0, 80}, {333, 80, 60, 40, 53, 0},      {1920, 1080, 300, 224, 49, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct image src = {.width = rows[i].source_width, .height = rows[i].source_height};
        const struct warp_params p = {
            .width = rows[i].width, .height = rows[i].height, .fit = FIT_OPENCV_CROP};
        const float across = (float)p.width / (float)src.width;
        const float down = (float)p.height / (float)src.height;
        const double s = across > down ? across : down;
        double m[6];
        CHECK(warp_src_to_dst(&p, &src, m) == 0, "warp_src_to_dst");
        CHECK(m[0] == s && m[4] == s && fabs(m[2] - (s / 2 - 0.5 - rows[i].left)) < 1e-9 &&
                  fabs(m[5] - (s / 2 - 0.5 - rows[i].top)) < 1e-9,
              "%dx%d: %.12g %.12g", src.width, src.height, m[2], m[5]);
    }
}

// Crops with odd offsets or sizes.
static void test_even_crops(void)
{
    static const struct rect rows[][2] = {
        {{0, 0, 0, 0}, {0, 0, 1918, 1078}},
        {{1, 3, 100, 101}, {2, 4, 100, 100}},
        {{2, 2, 11, 13}, {2, 2, 10, 12}},
        {{1, 1, 1918, 1078}, {2, 2, 1916, 1076}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct image src = {.format = PIXEL_NV12, .width = 1919, .height = 1079};
        struct op_params params = {.kind = OP_WARP};
        params.warp = (struct warp_params){.width = 64,
                                           .height = 64,
                                           .fit = FIT_DEEPSTREAM,
                                           .crop = rows[i][0],
                                           .scale = 1,
                                           .std = {1, 1, 1}};
        struct op op;
        const int error = op_init(&op, &params, &src);
        CHECK(error == 0, "row %zu: %d", i, error);
        if (error)
            continue;
        const struct rect at = rows[i][1];
        CHECK(op.warp.x0 == at.x && op.warp.y0 == at.y && op.warp.x1 == at.x + at.width &&
                  op.warp.y1 == at.y + at.height,
              "(%d, %d) to (%d, %d)", op.warp.x0, op.warp.y0, op.warp.x1, op.warp.y1);
        op_finish(&op);
    }
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    printf("fits: seed %llu\n", (unsigned long long)random.state);
    TEST(test_pictures_of_python());
    TEST(test_tensors_of_python());
    TEST(test_opencv_crop());
    TEST(test_even_crops());
    TEST(test_all_sizes(&random));
    TEST(test_turned_and_cropped(&random));
    return test_end();
}
