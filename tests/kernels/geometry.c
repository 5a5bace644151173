// Tests the properties of an op: matrices, tables, the source rows it reads, and its refusals.
#include <errno.h>

#include "tests/test.h"

#include "tests/kernels/cases.h"
#include "tests/kernels/definition.h"

static struct warp_params plain(int width, int height)
{
    return (struct warp_params){
        .width = width, .height = height, .scale = 1, .std = {1, 1, 1}, .fill = {114, 114, 114}};
}

static int warp_op(struct op *op, const struct warp_params *p, const struct image *src)
{
    return op_init(op, &(struct op_params){OP_WARP, {.warp = *p}}, src);
}

static int yuv_op(struct op *op, struct yuv_params p, const struct image *src)
{
    return op_init(op, &(struct op_params){OP_YUV, {.yuv = p}}, src);
}

static void test_letterbox(struct random *random)
{
    for (int i = 0; i < 2000; i++) {
        const int sw = random_in(random, 1, 4000), sh = random_in(random, 1, 4000);
        const int width = random_in(random, 1, 2000), height = random_in(random, 1, 2000);
        const struct warp_params p = plain(width, height);
        const double dw = p.width, dh = p.height, s = fmin(dw / sw, dh / sh);
        const double expected[6] = {s, 0, -s * sw / 2 + dw / 2 + s / 2 - 0.5,
                                    0, s, -s * sh / 2 + dh / 2 + s / 2 - 0.5};
        double m[6];
        const struct image src = {.width = sw, .height = sh};
        const int error = warp_src_to_dst(&p, &src, m);
        CHECK(error == 0 && memcmp(m, expected, sizeof(m)) == 0,
              "%dx%d -> %dx%d: %.17g %.17g %.17g %.17g %.17g %.17g", sw, sh, p.width, p.height,
              m[0], m[1], m[2], m[3], m[4], m[5]);
    }
}

// The tables must equal dst_to_src to 1/65536 pixel, dst_to_src the definition's positions, and
// src_to_dst its inverse.
static void test_tables(struct random *random)
{
    struct image src = {.format = PIXEL_RGB24, .width = 320, .height = 200};
    for (int i = 0; i < 2000; i++) {
        src.orientation = (enum orientation)(i / GEOMETRIES % (2 * ORIENTATION_MIRRORED));
        const struct warp_params p = warp_case(random, (enum geometry)(i % GEOMETRIES), &src, 200);
        char text[400];
        struct op op;
        const int error = warp_op(&op, &p, &src);
        CHECK(error == 0 || error == -ERANGE, "%d: %s", error, warp_case_text(text, &p, &src));
        if (error)
            continue;
        const struct warp *w = &op.warp;
        const double *m = op.src_to_dst;
        const int dx = random_in(random, 0, p.width - 1), dy = random_in(random, 0, p.height - 1);
        double x, y;
        warp_position(&p, &src, dx, dy, &x, &y);
        const double tx = (w->colx[dx] + w->rowx[dy]) / 65536.0;
        const double ty = (w->coly[dx] + w->rowy[dy]) / 65536.0;
        CHECK(fabs(tx - x) <= 1.01 / 65536 && fabs(ty - y) <= 1.01 / 65536,
              "(%d, %d) reads (%g, %g), not (%g, %g): %s", dx, dy, tx, ty, x, y,
              warp_case_text(text, &p, &src));
        const double back_x = m[0] * x + m[1] * y + m[2], back_y = m[3] * x + m[4] * y + m[5];
        CHECK(fabs(back_x - dx) < 1e-6 && fabs(back_y - dy) < 1e-6,
              "(%d, %d) comes back as (%g, %g): %s", dx, dy, back_x, back_y,
              warp_case_text(text, &p, &src));
        op_finish(&op);
    }
}

// Maps a corner of the tensor as consumers do: with the header's floats and offsets of 0.5.
static void expect_corner(const struct op *op, double x, double y, double expected_x,
                          double expected_y, const char *text)
{
    float d[6];
    for (int i = 0; i < 6; i++)
        d[i] = (float)op->dst_to_src[i];
    const double sx = d[0] * (x - 0.5) + d[1] * (y - 0.5) + d[2] + 0.5;
    const double sy = d[3] * (x - 0.5) + d[4] * (y - 0.5) + d[5] + 0.5;
    CHECK(fabs(sx - expected_x) < 0.01 && fabs(sy - expected_y) < 0.01,
          "corner (%g, %g) lies at (%g, %g), not (%g, %g): %s", x, y, sx, sy, expected_x,
          expected_y, text);
}

static void test_corners(struct random *random)
{
    for (int i = 0; i < 9000; i++) {
        struct image src = {.format = PIXEL_NV12};
        src.width = random_in(random, 1, 4096);
        src.height = random_in(random, 1, 2304);
        src.orientation = (enum orientation)(i / GEOMETRIES % (2 * ORIENTATION_MIRRORED));
        const struct warp_params p = warp_case(random, (enum geometry)(i % GEOMETRIES), &src, 1280);
        char text[400];
        struct op op;
        const int error = warp_op(&op, &p, &src);
        CHECK(error == 0 || error == -ERANGE, "%d: %s", error, warp_case_text(text, &p, &src));
        if (error)
            continue;
        const double x = random_real(random, 0, p.width), y = random_real(random, 0, p.height);
        double sx, sy;
        warp_point(&p, &src, x, y, &sx, &sy);
        expect_corner(&op, x, y, sx, sy, warp_case_text(text, &p, &src));
        op_finish(&op);
    }
}

// Cases that need no arithmetic: the outer corners of the shown area.
static void test_outer_corners(void)
{
    static const struct {
        int width, height;       // of the source
        struct warp_params warp; // to 640x640
        double shown[4], at[4];  // opposite corners in the tensor and in the source: x, y, x, y
    } rows[] = {
        {1920, 1080, {.fit = FIT_LETTERBOX}, {0, 140, 640, 500}, {0, 0, 1920, 1080}},
        {3840, 2160, {.fit = FIT_LETTERBOX}, {0, 140, 640, 500}, {0, 0, 3840, 2160}},
        {1080, 1920, {.fit = FIT_LETTERBOX}, {140, 0, 500, 640}, {0, 0, 1080, 1920}},
        {640, 640, {.fit = FIT_LETTERBOX}, {0, 0, 640, 640}, {0, 0, 640, 640}},
        {1920, 1080, {.fit = FIT_STRETCH}, {0, 0, 640, 640}, {0, 0, 1920, 1080}},
        {1920, 1080, {.fit = FIT_CROP}, {0, 0, 640, 640}, {420, 0, 1500, 1080}},
        {1920, 1080, {.fit = FIT_NONE}, {0, 0, 640, 640}, {640, 220, 1280, 860}},
        {1920, 1080, {.rotate = 90}, {140, 0, 500, 640}, {0, 1080, 1920, 0}},
        {1920, 1080, {.rotate = 180}, {0, 140, 640, 500}, {1920, 1080, 0, 0}},
        {1920, 1080, {.flip = FLIP_HORIZONTAL}, {0, 140, 640, 500}, {1920, 0, 0, 1080}},
        {1920, 1080, {.crop = {100, 50, 320, 320}}, {0, 0, 640, 640}, {100, 50, 420, 370}},
        {1920,
         1080, // each source pixel as 4x4, with the first one's corner at the tensor's
         {.has_affine = true, .affine = {4, 0, 1.5, 0, 4, 1.5}},
         {0, 0, 640, 640},
         {0, 0, 160, 160}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct image src = {
            .format = PIXEL_NV12, .width = rows[i].width, .height = rows[i].height};
        struct warp_params p = rows[i].warp;
        const double *shown = rows[i].shown, *at = rows[i].at;
        struct op op;
        char text[400];
        p.width = p.height = 640;
        p.scale = p.std[0] = p.std[1] = p.std[2] = 1;
        CHECK(warp_op(&op, &p, &src) == 0, "op_init");
        warp_case_text(text, &p, &src);
        expect_corner(&op, shown[0], shown[1], at[0], at[1], text);
        expect_corner(&op, shown[2], shown[3], at[2], at[3], text);
        op_finish(&op);
    }
}

// Sets every byte outside the claimed rows to `value`, in chroma planes too.
static void poison(const struct image *image, struct band rows, uint8_t value)
{
    for (int i = 0; i < pixel_format_planes(image->format); i++) {
        const int halve = i > 0 && is_420(image->format);
        const bool none = rows.y0 == rows.y1;
        const int y0 = none ? 0 : rows.y0 >> halve;
        const int y1 = none ? 0 : ((rows.y1 - 1) >> halve) + 1;
        for (int y = 0; y < plane_rows(image->format, i, image->height); y++)
            if (y < y0 || y >= y1)
                memset(image->plane[i].data + y * image->plane[i].stride, value,
                       plane_row_bytes(image->format, i, image->width));
    }
}

static void run(const struct op *op, const struct image *src, struct band band, void *result)
{
    struct image dst;
    op_lay_out(op, &dst, result);
    op_reference(&dst, src, op, band, false);
}

static void check_rows(const struct op *op, const struct picture *picture, struct band out,
                       const char *text)
{
    const struct image *src = &picture->image;
    const struct band rows = op_source_rows(op, out);
    CHECK(rows.y0 >= 0 && rows.y0 <= rows.y1 && rows.y1 <= src->height, "%d to %d: %s", rows.y0,
          rows.y1, text);
    uint8_t *results[2];
    for (int i = 0; i < 2; i++) {
        results[i] = calloc(1, op->dst_bytes);
        poison(src, rows, i ? 255 : 0);
        run(op, src, out, results[i]);
    }
    CHECK(memcmp(results[0], results[1], op->dst_bytes) == 0,
          "rows %d to %d read more than %d to %d: %s", out.y0, out.y1, rows.y0, rows.y1, text);
    free(results[0]);
    free(results[1]);
}

static void test_source_rows(struct random *random)
{
    for (int i = 0; i < 6000; i++) {
        char text[400];
        const enum pixel_format format = sources[random_in(random, 0, SOURCES - 1)];
        struct picture picture = picture_random(format, 50, random);
        picture.image.colour = colour_case(random);
        struct op op;
        int error;
        if (i % 3) {
            const enum geometry geometry = (enum geometry)(i % GEOMETRIES);
            struct warp_params p = i % 3 == 1 ? warp_case(random, geometry, &picture.image, 40)
                                              : filter_case(random, &picture.image, 40);
            p.order = (enum order)random_in(random, ORDER_RGB, ORDER_GRAY);
            error = warp_op(&op, &p, &picture.image);
            warp_case_text(text, &p, &picture.image);
        } else {
            struct yuv_params p = yuv_case(random);
            if (random_in(random, 0, 2) > 0)
                yuv_geometry_case(random, &p, &picture.image, 40);
            error = yuv_op(&op, p, &picture.image);
            yuv_case_text(text, &p, &picture.image);
        }
        CHECK(error == 0 || error == -ERANGE, "%d: %s", error, text);
        if (error == 0) {
            struct band out = {.y0 = random_in(random, 0, op.dst.height - 1) & ~1};
            out.y1 = random_in(random, out.y0 + 1, op.dst.height);
            if (op.kind == OP_YUV && out.y1 < op.dst.height)
                out.y1 = (out.y1 + 1) & ~1;
            check_rows(&op, &picture, out, text);
            op_finish(&op);
        }
        picture_free(&picture);
    }
}

// A band must not claim the whole source: 1080 rows to 360, in bands of 10, need about 30 each.
static void test_source_rows_tight(void)
{
    const struct image src = {.format = PIXEL_NV12, .width = 1920, .height = 1080};
    const struct warp_params p = plain(640, 640); // the picture is in rows 140 to 499
    struct op op;
    CHECK(warp_op(&op, &p, &src) == 0, "op_init");
    const struct band above = op_source_rows(&op, (struct band){0, 130});
    const struct band middle = op_source_rows(&op, (struct band){240, 250});
    CHECK(above.y0 == above.y1, "%d to %d", above.y0, above.y1);
    CHECK(middle.y0 >= 296 && middle.y1 <= 334, "%d to %d", middle.y0, middle.y1);
    op_finish(&op);
    struct warp_params filtered = p;
    filtered.filter = FILTER_TRIANGLE;
    CHECK(warp_op(&op, &filtered, &src) == 0, "op_init");
    const struct band none = op_source_rows(&op, (struct band){0, 130});
    const struct band read = op_source_rows(&op, (struct band){240, 250});
    CHECK(none.y0 == none.y1, "%d to %d", none.y0, none.y1);
    CHECK(read.y0 >= 296 && read.y1 <= 334, "%d to %d", read.y0, read.y1);
    op_finish(&op);
    CHECK(yuv_op(&op, (struct yuv_params){.format = PIXEL_YUV420P}, &src) == 0, "op_init");
    const struct band own = op_source_rows(&op, (struct band){100, 120});
    CHECK(own.y0 == 100 && own.y1 == 120, "%d to %d", own.y0, own.y1);
    op_finish(&op);
}

// A resized picture as a reader of the header sees it: its size and the origin of its pixels.
static void test_yuv_matrices(void)
{
    const struct image src = {.format = PIXEL_NV12, .width = 1920, .height = 1080};
    struct yuv_params p = {.format = PIXEL_YUV420P, .resized = true, .geometry = plain(640, 360)};
    struct op op;
    CHECK(yuv_op(&op, p, &src) == 0, "op_init");
    expect_corner(&op, 0, 0, 0, 0, "resized");
    expect_corner(&op, 640, 360, 1920, 1080, "resized");
    const struct band rows = op_source_rows(&op, (struct band){100, 110});
    CHECK(rows.y0 >= 296 && rows.y1 <= 334, "%d to %d", rows.y0, rows.y1);
    CHECK(op.dst_bytes == 640 * 360 * 3 / 2, "%zu", op.dst_bytes);
    op_finish(&op);
    p.geometry = plain(0, 0);
    p.geometry.rotate = 90;
    p.geometry.crop = (struct rect){100, 50, 300, 201};
    CHECK(yuv_op(&op, p, &src) == 0, "op_init");
    CHECK(op.dst.width == 201 && op.dst.height == 300, "%dx%d", op.dst.width, op.dst.height);
    expect_corner(&op, 201, 0, 100, 50, "turned");
    expect_corner(&op, 0, 300, 400, 251, "turned");
    op_finish(&op);
}

static void refuse_warp(struct warp_params p, const struct image *src, int expected,
                        const char *what)
{
    struct op op;
    const int error = warp_op(&op, &p, src);
    CHECK(error == expected, "%d, not %d: %s", error, expected, what);
    if (error == 0)
        op_finish(&op);
}

static void test_warp_refusals(void)
{
    const struct image src = {.format = PIXEL_NV12, .width = 100, .height = 50};
    const struct rect crops[] = {{-1, 0, 10, 10},      {0, -1, 10, 10},     {91, 0, 10, 10},
                                 {0, 41, 10, 10},      {0, 0, 10, 0},       {0, 0, -5, 10},
                                 {0, 0, 10, -5},       {0, 0, 101, 10},     {0, 0, 10, 51},
                                 {INT32_MAX, 0, 1, 1}, {0, 0, INT32_MAX, 1}};
    for (size_t i = 0; i < sizeof(crops) / sizeof(crops[0]); i++) {
        struct warp_params p = plain(10, 10);
        p.crop = crops[i];
        refuse_warp(p, &src, -EINVAL, "crop outside the picture");
    }
    struct warp_params p = plain(10, 10);
    p.crop = (struct rect){99, 49, 1, 1};
    refuse_warp(p, &src, 0, "the last pixel");
    p = plain(10, 10);
    p.has_affine = true;
    refuse_warp(p, &src, -EINVAL, "affine of zeroes");
    memcpy(p.affine, (double[6]){1, 2, 0, 2, 4, 0}, sizeof(p.affine));
    refuse_warp(p, &src, -EINVAL, "singular affine");
    memcpy(p.affine, (double[6]){1, 0, NAN, 0, 1, 0}, sizeof(p.affine));
    refuse_warp(p, &src, -EINVAL, "affine that is no number");
    memcpy(p.affine, (double[6]){1, 0, 32760, 0, 1, 0}, sizeof(p.affine));
    refuse_warp(p, &src, 0, "far, but within 32 bits");
    memcpy(p.affine, (double[6]){1, 0, 32767, 0, 1, 0}, sizeof(p.affine));
    refuse_warp(p, &src, -ERANGE, "beyond 32 bits in x");
    memcpy(p.affine, (double[6]){1, 0, 0, 0, 1e-5, 0}, sizeof(p.affine));
    refuse_warp(p, &src, -ERANGE, "beyond 32 bits in y");
    for (int filter = FILTER_BILINEAR; filter <= FILTER_TRIANGLE; filter++) {
        const int mixed = filter == FILTER_BILINEAR ? 0 : -EINVAL;
        p = plain(10, 10);
        p.filter = (enum filter)filter;
        p.rotate = 30;
        refuse_warp(p, &src, mixed, "axes that mix");
        p.rotate = 270;
        refuse_warp(p, &src, 0, "axes that change places");
        p.has_affine = true;
        memcpy(p.affine, (double[6]){1, 1e-9, 0, 0, 1, 0}, sizeof(p.affine));
        refuse_warp(p, &src, mixed, "axes that hardly mix");
    }
    p = plain(10, 10);
    p.rotate = INFINITY;
    refuse_warp(p, &src, -EINVAL, "rotate without end");
    p = plain(10, 10);
    p.std[1] = 0;
    refuse_warp(p, &src, -EINVAL, "std 0");
    p = plain(10, 10);
    p.scale = NAN;
    refuse_warp(p, &src, -EINVAL, "scale that is no number");
    refuse_warp(plain(0, 10), &src, -EINVAL, "no width");
    refuse_warp(plain(10, IMAGE_SIDE_MAX + 1), &src, -EINVAL, "too high");
    const enum pixel_format none[] = {PIXEL_NONE, PIXEL_YUV24, PIXEL_TENSOR, PIXEL_FORMATS};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        refuse_warp(plain(10, 10), &(struct image){.format = none[i], .width = 10, .height = 10},
                    -EINVAL, "a format that is no source");
    refuse_warp(plain(10, 10), &(struct image){.format = PIXEL_BGRA, .width = 10}, -EINVAL,
                "a source of no rows");
}

static void refuse_yuv(struct yuv_params p, const struct image *src, const char *what)
{
    struct op op;
    const int error = yuv_op(&op, p, src);
    CHECK(error == -EINVAL, "%d: %s", error, what);
}

static void test_yuv_refusals(void)
{
    const struct image src = {.format = PIXEL_NV12, .width = 100, .height = 50};
    const struct image wide = {.format = PIXEL_NV12, .width = IMAGE_SIDE_MAX + 1, .height = 50};
    refuse_yuv((struct yuv_params){.format = PIXEL_P010}, &src, "a format that is no result");
    refuse_yuv((struct yuv_params){.format = PIXEL_BGRA}, &src, "a format that is no result");
    refuse_yuv((struct yuv_params){.format = PIXEL_NV12}, &wide, "too wide");
    refuse_yuv(
        (struct yuv_params){.format = PIXEL_NV12, .colour = {MATRIX_BT601_8BIT, RANGE_FULL, 0}},
        &src, "bt601-8bit in full range");
    refuse_yuv((struct yuv_params){.format = PIXEL_NV12, .colour.siting = SITING_TOPLEFT}, &src,
               "a siting that the result does not have");
    struct yuv_params p = {.format = PIXEL_NV12, .resized = true, .geometry = plain(10, 10)};
    p.geometry.crop = (struct rect){91, 0, 10, 10};
    refuse_yuv(p, &src, "a crop outside the picture");
    p.geometry = plain(10, 10);
    p.geometry.filter = FILTER_AREA;
    p.geometry.rotate = 30;
    refuse_yuv(p, &src, "axes that mix under a filter");
    p.geometry = plain(IMAGE_SIDE_MAX + 1, 10);
    refuse_yuv(p, &src, "too wide");
    p.geometry = plain(0, 0);
    p.geometry.rotate = NAN;
    refuse_yuv(p, &src, "a rotation that is no number");
    const struct image widest = {.format = PIXEL_NV12, .width = 16384, .height = 16384};
    p.geometry.rotate = 45;
    refuse_yuv(p, &widest, "a natural size that no picture has");
}

static void test_resolve(void)
{
    const struct colour none = {0}, all = {MATRIX_BT2020, RANGE_FULL, SITING_TOPLEFT};
    const struct colour small = colour_resolve(none, 719), large = colour_resolve(none, 720);
    const struct colour said = colour_resolve(all, 100);
    CHECK(small.matrix == MATRIX_BT601 && small.range == RANGE_LIMITED &&
              small.siting == SITING_LEFT,
          "%d %d %d", small.matrix, small.range, small.siting);
    CHECK(large.matrix == MATRIX_BT709, "%d", large.matrix);
    CHECK(said.matrix == MATRIX_BT2020 && said.range == RANGE_FULL && said.siting == SITING_TOPLEFT,
          "%d %d %d", said.matrix, said.range, said.siting);
}

static void test_lay_out(void)
{
    static const struct {
        enum pixel_format format;
        const char *name;
        size_t bytes; // for 5x3 pixels
    } rows[] = {
        {PIXEL_NONE, "none", 0},
        {PIXEL_BGRA, "bgra", 60},
        {PIXEL_RGBA, "rgba", 60},
        {PIXEL_BGR24, "bgr24", 45},
        {PIXEL_RGB24, "rgb24", 45},
        {PIXEL_GBRP, "gbrp", 45},
        {PIXEL_NV12, "nv12", 27},
        {PIXEL_YUV420P, "yuv420p", 27},
        {PIXEL_P010, "p010", 54},
        {PIXEL_YUV420P10, "yuv420p10", 54},
        {PIXEL_YUV444P, "yuv444p", 45},
        {PIXEL_YUV422P, "yuv422p", 33},
        {PIXEL_YUV422P10, "yuv422p10", 66},
        {PIXEL_YUV444P10, "yuv444p10", 90},
        {PIXEL_YUYV422, "yuyv422", 36},
        {PIXEL_UYVY422, "uyvy422", 36},
        {PIXEL_NV21, "nv21", 27},
        {PIXEL_GRAY, "gray", 15},
        {PIXEL_YUV24, "yuv24", 45},
        {PIXEL_TENSOR, "tensor", 0},
        {PIXEL_FORMATS, "none", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct image image = {.format = rows[i].format, .width = 5, .height = 3};
        CHECK(rows[i].format == PIXEL_FORMATS ||
                  pixel_layout_of(rows[i].format).format == rows[i].format,
              "%s: another row", rows[i].name);
        const size_t bytes = image_lay_out(&image, NULL);
        CHECK(bytes == rows[i].bytes, "%zu, not %zu: %s", bytes, rows[i].bytes, rows[i].name);
        CHECK(strcmp(pixel_format_name(rows[i].format), rows[i].name) == 0, "%s, not %s",
              pixel_format_name(rows[i].format), rows[i].name);
    }
    struct image image = {.format = PIXEL_NV12, .width = 5, .height = 3};
    uint8_t memory[27];
    image_lay_out(&image, memory);
    CHECK(image.plane[0].data == memory && image.plane[0].stride == 5 &&
              image.plane[1].data == memory + 15 && image.plane[1].stride == 6,
          "nv12 lies elsewhere");
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    printf("geometry: seed %llu\n", (unsigned long long)random.state);
    TEST(test_letterbox(&random));
    TEST(test_tables(&random));
    TEST(test_corners(&random));
    TEST(test_outer_corners());
    TEST(test_source_rows(&random));
    TEST(test_source_rows_tight());
    TEST(test_yuv_matrices());
    TEST(test_warp_refusals());
    TEST(test_yuv_refusals());
    TEST(test_resolve());
    TEST(test_lay_out());
    return test_end();
}
