// framed_to_source maps boxes and points back to the place that the daemon's kernels took them
// from, over many shapes, fits, turns, flips and tiles. The expected place is computed here
// separately, from edge to edge, without a matrix.
#include <float.h>
#include <math.h>

#include "client/framed.h"
#include "kernels/image.h"
#include "kernels/ops.h"
#include "tests/kernels/picture.h"
#include "tests/test.h"

static const double NEAR = 0.01; // source pixels

struct point {
    double x, y;
};

struct size {
    double width, height;
};

// A test's parameters, and the header that the daemon would send.
struct shape {
    struct image src;
    struct warp_params params;
    int quarters; // turns of the picture, including the source's orientation
    struct framed_header header;
};

// Sets the header's matrix to the inverse of the daemon's, as float.
static bool make_header(struct shape *shape)
{
    double m[6];
    if (warp_src_to_dst(&shape->params, &shape->src, m) != 0)
        return false;
    const double det = m[0] * m[4] - m[1] * m[3];
    const double inverse[6] = {
        m[4] / det,  -m[1] / det, (m[1] * m[5] - m[4] * m[2]) / det,
        -m[3] / det, m[0] / det,  (m[3] * m[2] - m[0] * m[5]) / det,
    };
    shape->header = (struct framed_header){
        .source_width = (uint32_t)shape->src.width,
        .source_height = (uint32_t)shape->src.height,
    };
    for (int i = 0; i < 6; i++)
        shape->header.dst_to_src[i] = (float)inverse[i];
    return true;
}

static double half_even(double x)
{
    const double down = floor(x), rest = x - down;
    return down + (rest > 0.5 || (rest == 0.5 && fmod(down, 2) != 0));
}

// Maps a point of the turned crop, which has size `from`, to the tensor.
static struct point fitted(const struct shape *shape, struct point p, struct size from)
{
    const double width = shape->params.width, height = shape->params.height;
    const double sx = width / from.width, sy = height / from.height;
    double s = sx < sy ? sx : sy, w, h;
    switch (shape->params.fit) {
    case FIT_STRETCH:
        return (struct point){p.x * sx, p.y * sy};
    case FIT_CROP:
        s = sx > sy ? sx : sy;
        break;
    case FIT_ULTRALYTICS:
        w = fmax(1, half_even(from.width * s));
        h = fmax(1, half_even(from.height * s));
        return (struct point){half_even((width - w) / 2 - 0.1) + p.x * w / from.width,
                              half_even((height - h) / 2 - 0.1) + p.y * h / from.height};
    case FIT_YOLOX:
        w = fmax(1, floor(from.width * s));
        h = fmax(1, floor(from.height * s));
        return (struct point){p.x * w / from.width, p.y * h / from.height};
    default:
        break;
    }
    return (struct point){width / 2 + s * (p.x - from.width / 2),
                          height / 2 + s * (p.y - from.height / 2)};
}

// Maps a point of the source to the tensor, by quarter turns clockwise, flips and the fit.
static struct point in_tensor(const struct shape *shape, struct point p)
{
    const struct rect *crop = &shape->params.crop;
    struct size size = {crop->width, crop->height};
    p.x -= crop->x;
    p.y -= crop->y;
    for (int i = 0; i < shape->quarters; i++) {
        p = (struct point){size.height - p.y, p.x};
        size = (struct size){size.height, size.width};
    }
    if (shape->params.flip & FLIP_HORIZONTAL)
        p.x = size.width - p.x;
    if (shape->params.flip & FLIP_VERTICAL)
        p.y = size.height - p.y;
    return fitted(shape, p, size);
}

static double between(struct random *random, double low, double high)
{
    return low + (high - low) * (double)(random_next(random) >> 11) / (double)(1ull << 53);
}

static struct shape random_shape(struct random *random)
{
    static const enum fit fits[] = {FIT_LETTERBOX, FIT_STRETCH, FIT_CROP, FIT_ULTRALYTICS,
                                    FIT_YOLOX};
    static const int sizes[] = {160, 224, 320, 416, 512, 640, 960, 1280};
    struct shape shape = {
        .src = {.width = random_in(random, 64, 7680), .height = random_in(random, 64, 4320)},
        .params = {.width = sizes[random_in(random, 0, 7)],
                   .height = sizes[random_in(random, 0, 7)],
                   .fit = fits[random_in(random, 0, 4)],
                   .flip = (enum flip)random_in(random, FLIP_NONE, FLIP_BOTH)},
    };
    const int rotated = random_in(random, 0, 3), orientation = random_in(random, 0, 3);
    shape.params.rotate = 90.0 * rotated;
    shape.src.orientation = (enum orientation)orientation;
    shape.quarters = rotated + orientation;
    shape.params.crop = (struct rect){0, 0, shape.src.width, shape.src.height};
    if (random_in(random, 0, 2) == 0) { // one of its tiles
        struct rect tiles[TILES_MAX];
        const struct tiling tiling = {.size = random_in(random, 1200, 2000), .overlap = 20};
        const int n = tiles_make(tiles, &tiling, shape.params.crop);
        CHECK(n > 0, "%d tiles of %dx%d", n, shape.src.width, shape.src.height);
        shape.params.crop = tiles[random_in(random, 0, n - 1)];
    }
    return shape;
}

static void test_quarter_turns(struct random *random)
{
    struct shape shape = random_shape(random);
    const struct rect crop = shape.params.crop;
    CHECK(make_header(&shape), "fit %d of %dx%d", shape.params.fit, crop.width, crop.height);
    const double x[2] = {between(random, crop.x, crop.x + crop.width - 1),
                         between(random, crop.x + crop.width - 1, crop.x + crop.width)};
    const double y[2] = {crop.y, between(random, crop.y + 1, crop.y + crop.height)};
    const struct point a = in_tensor(&shape, (struct point){x[0], y[0]});
    const struct point b = in_tensor(&shape, (struct point){x[1], y[1]});
    struct framed_detection found = {(float)fmin(a.x, b.x),
                                     (float)fmin(a.y, b.y),
                                     (float)fmax(a.x, b.x),
                                     (float)fmax(a.y, b.y),
                                     0.5f,
                                     7,
                                     0,
                                     9};
    framed_to_source(&shape.header, &found.x1, 1, sizeof found / sizeof found.x1, 0);
    CHECK(fabs(found.x1 - x[0]) < NEAR && fabs(found.y1 - y[0]) < NEAR &&
              fabs(found.x2 - x[1]) < NEAR && fabs(found.y2 - y[1]) < NEAR,
          "%dx%d fit %d, %d turns, flip %d, crop %d %d %dx%d: %f %f %f %f, not %f %f %f %f",
          shape.src.width, shape.src.height, shape.params.fit, shape.quarters, shape.params.flip,
          crop.x, crop.y, crop.width, crop.height, (double)found.x1, (double)found.y1,
          (double)found.x2, (double)found.y2, x[0], y[0], x[1], y[1]);
    CHECK(found.score == 0.5f && found.class_id == 7 && found.track == 9, "all else is changed");
}

// Any angle, with letterbox: a box comes back as the hull of its corners, a point as a point.
static void test_angles(struct random *random)
{
    struct shape shape = random_shape(random);
    const struct rect *crop = &shape.params.crop;
    shape.params.fit = FIT_LETTERBOX;
    shape.params.flip = FLIP_NONE;
    shape.src.orientation = (enum orientation)0;
    shape.params.rotate = between(random, -180, 180);
    CHECK(make_header(&shape), "rotated by %f", shape.params.rotate);
    const double angle = shape.params.rotate * 3.14159265358979323846 / 180;
    const double c = cos(angle), s = sin(angle);
    const double scale =
        fmin(shape.params.width / (fabs(c) * crop->width + fabs(s) * crop->height),
             shape.params.height / (fabs(s) * crop->width + fabs(c) * crop->height));
    const float box[4] = {10, 20, 30, 25};
    struct point low = {DBL_MAX, DBL_MAX}, high = {-DBL_MAX, -DBL_MAX};
    for (int i = 0; i < 4; i++) {
        const double x = (box[i & 1 ? 2 : 0] - shape.params.width / 2.0) / scale;
        const double y = (box[i & 2 ? 3 : 1] - shape.params.height / 2.0) / scale;
        const struct point p = {c * x + s * y + crop->x + crop->width / 2.0,
                                -s * x + c * y + crop->y + crop->height / 2.0};
        float point[2] = {box[i & 1 ? 2 : 0], box[i & 2 ? 3 : 1]};
        framed_points_to_source(&shape.header, point, 1, 2, 0);
        CHECK(fabs(point[0] - p.x) < NEAR && fabs(point[1] - p.y) < NEAR, "%f %f, not %f %f",
              (double)point[0], (double)point[1], p.x, p.y);
        low = (struct point){fmin(low.x, p.x), fmin(low.y, p.y)};
        high = (struct point){fmax(high.x, p.x), fmax(high.y, p.y)};
    }
    float hull[4] = {box[0], box[1], box[2], box[3]};
    framed_to_source(&shape.header, hull, 1, 4, 0);
    CHECK(fabs(hull[0] - low.x) < NEAR && fabs(hull[1] - low.y) < NEAR &&
              fabs(hull[2] - high.x) < NEAR && fabs(hull[3] - high.y) < NEAR,
          "%f %f %f %f, not %f %f %f %f", (double)hull[0], (double)hull[1], (double)hull[2],
          (double)hull[3], low.x, low.y, high.x, high.y);
}

static void test_clip(void)
{
    const struct framed_header header = {
        .source_width = 100, .source_height = 50, .dst_to_src = {1, 0, 0, 0, 1, 0}};
    float boxes[2][6] = {{-5, 10, 120, 60, 0.25f, 3}, {20, -1, 30, NAN, 0.75f, 4}};
    framed_to_source(&header, boxes[0], 2, 6, FRAMED_CLIP);
    CHECK(boxes[0][0] == 0 && boxes[0][1] == 10 && boxes[0][2] == 100 && boxes[0][3] == 50,
          "%f %f %f %f", (double)boxes[0][0], (double)boxes[0][1], (double)boxes[0][2],
          (double)boxes[0][3]);
    CHECK(boxes[1][0] == 20 && boxes[1][2] == 30 && boxes[0][4] == 0.25f && boxes[1][5] == 4,
          "the second box");
    float points[2][2] = {{-1, 20}, {101, 51}};
    framed_points_to_source(&header, points[0], 2, 2, FRAMED_CLIP);
    CHECK(points[0][0] == 0 && points[0][1] == 20 && points[1][0] == 100 && points[1][1] == 50,
          "points");
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    const long cases = cases_from(9000);
    for (long i = 0; i < cases; i++)
        TEST(test_quarter_turns(&random));
    for (long i = 0; i < cases / 4; i++)
        TEST(test_angles(&random));
    TEST(test_clip());
    return test_end();
}
