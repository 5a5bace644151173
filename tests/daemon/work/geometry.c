// Elements made of a camera's pictures: one per output, or its tiles, over picture sizes, regions
// and outputs that are impossible.
#include "daemon/work/geometry.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

enum { OUTPUTS = 3, PLAIN = 0, TILED = 1, LAST = 2 };

struct fixture {
    struct config top;
    struct devices *devices;
    struct device_lease lease;
    struct output_config config[OUTPUTS];
    struct output output[OUTPUTS];
    struct subscriptions *subscriptions;
    struct frame frame;
    struct geometry geometry;
    char notice[NOTICE_MAX];
};

static struct op_params tensor(int width, int height)
{
    struct op_params params = {.kind = OP_WARP};
    params.warp = (struct warp_params){.width = width, .height = height, .scale = 1};
    for (int i = 0; i < 3; i++)
        params.warp.std[i] = 1;
    return params;
}

static struct fixture *start(void)
{
    static char names[][8] = {"plain", "tiled", "last"};
    struct fixture *f = calloc(1, sizeof *f);
    f->top.cpu.workers = 1;
    CHECK(devices_open_with(&f->devices, &f->top, NULL, &cpu_backend) == 0, "devices");
    CHECK(device_acquire(f->devices, NULL, &f->lease) == 0, "device");
    f->subscriptions = calloc(1, sizeof *f->subscriptions + OUTPUTS * sizeof(struct subscription));
    f->subscriptions->n = f->subscriptions->n_pictures = OUTPUTS;
    for (int i = 0; i < OUTPUTS; i++) {
        f->config[i].name = names[i];
        f->output[i].config = &f->config[i];
        f->subscriptions->list[i].output = &f->output[i];
        f->subscriptions->list[i].op = tensor(64, 64);
    }
    f->subscriptions->list[LAST].op = (struct op_params){OP_YUV, {.yuv.format = PIXEL_NV12}};
    f->subscriptions->list[TILED].tiling =
        (struct tiling){.size = 640, .overlap = 20, .full = true};
    f->geometry =
        (struct geometry){.lease = &f->lease, .list = f->subscriptions->list, .n_outputs = OUTPUTS};
    return f;
}

static void open_for(struct fixture *f, int width, int height)
{
    f->frame.image = (struct image){.format = PIXEL_NV12, .width = width, .height = height};
    f->notice[0] = 0;
    const int rc = geometry_open(&f->geometry, &f->frame.image, 0, NULL, f->notice);
    CHECK(rc == 0, "%dx%d: %d", width, height, rc);
}

static void finish(struct fixture *f)
{
    geometry_close(&f->geometry);
    CHECK(f->geometry.n == 0 && !f->geometry.plan, "closed");
    device_release(&f->lease);
    devices_close(f->devices);
    free(f->subscriptions);
    free(f);
}

static void expect_first(const struct fixture *f, int plain, int tiled, int last)
{
    const int *first = f->geometry.first;
    CHECK(first[1] - first[0] == plain && first[2] - first[1] == tiled &&
              first[3] - first[2] == last && f->geometry.n == plain + tiled + last,
          "%d %d %d of %d", first[1] - first[0], first[2] - first[1], first[3] - first[2],
          f->geometry.n);
}

// Checks that the op is the one for the region's crop.
static void expect_region(const struct fixture *f, int subscription, int part)
{
    const struct element *element = &f->geometry.elements[f->geometry.first[subscription] + part];
    struct op_params params = f->subscriptions->list[subscription].op;
    struct op op;
    params.warp.crop = element->region;
    CHECK(op_init(&op, &params, &f->frame.image) == 0, "op");
    CHECK(memcmp(op.dst_to_src, element->op.dst_to_src, sizeof op.dst_to_src) == 0,
          "part %d: %g %g, not %g %g", part, element->op.dst_to_src[2], element->op.dst_to_src[5],
          op.dst_to_src[2], op.dst_to_src[5]);
    op_finish(&op);
}

static void test_tiles(void)
{
    struct fixture *f = start();
    open_for(f, 3840, 2160);
    expect_first(f, 1, 33, 1);
    CHECK(!f->notice[0], "%s", f->notice);
    for (int i = 0; i < 33; i++)
        expect_region(f, TILED, i);
    const struct rect second = f->geometry.elements[2].region;
    CHECK(second.x == 457 && second.y == 0 && second.width == 640, "%d,%d", second.x, second.y);
    const struct rect whole = f->geometry.elements[33].region;
    CHECK(whole.width == 3840 && whole.height == 2160, "the whole picture is last");
    geometry_close(&f->geometry);
    open_for(f, 640, 480); // smaller than a tile
    expect_first(f, 1, 1, 1);
    finish(f);
}

// Tiles of a region lie inside it.
static void test_region(void)
{
    struct fixture *f = start();
    f->subscriptions->list[TILED].op.warp.crop = (struct rect){1000, 500, 1200, 600};
    f->subscriptions->list[TILED].tiling.full = false;
    open_for(f, 3840, 2160);
    expect_first(f, 1, 3, 1);
    for (int i = 0; i < 3; i++) {
        const struct rect r = f->geometry.elements[1 + i].region;
        CHECK(r.x == 1000 + 280 * i && r.y == 500 && r.width == 640 && r.height == 600,
              "%d,%d %dx%d", r.x, r.y, r.width, r.height);
        expect_region(f, TILED, i);
    }
    finish(f);
}

// An output with too many tiles, or tiles beyond the picture, has no element; others keep theirs.
static void test_refused(void)
{
    struct fixture *f = start();
    f->subscriptions->list[TILED].tiling.size = 300;
    open_for(f, 3840, 2160);
    expect_first(f, 1, 0, 1);
    CHECK(strstr(f->notice, "output tiled") && strstr(f->notice, "64"), "%s", f->notice);
    geometry_close(&f->geometry);

    f->subscriptions->list[PLAIN].tiling = (struct tiling){.size = 640, .overlap = 20};
    f->subscriptions->list[TILED].tiling.size = 640;
    open_for(f, 3840, 2160); // 32, then 33
    expect_first(f, 32, 0, 1);
    geometry_close(&f->geometry);

    f->subscriptions->list[LAST].tiling.size = 640; // not a warp
    open_for(f, 3840, 2160);
    expect_first(f, 32, 0, 0);
    geometry_close(&f->geometry);

    f->subscriptions->list[LAST].tiling.size = 0;
    f->subscriptions->list[TILED].op.warp.crop = (struct rect){0, 0, 1280, 1300};
    f->subscriptions->list[PLAIN].tiling.size = 0;
    open_for(f, 1280, 1200); // the last tiles leave the picture
    expect_first(f, 1, 0, 1);
    CHECK(strstr(f->notice, "the crop or affine leaves the picture"), "%s", f->notice);
    finish(f);
}

// A picture's tiles go into one batch, or into none.
static void test_small_batch(void)
{
    struct fixture *f = start();
    f->config[TILED].is_batch = true;
    f->config[TILED].capacity = 32;
    open_for(f, 3840, 2160);
    expect_first(f, 1, 0, 1);
    CHECK(strstr(f->notice, "output tiled") && strstr(f->notice, "count"), "%s", f->notice);
    finish(f);
}

// The notice names the fit, not a crop, as there is none.
static void test_one_pixel(void)
{
    struct fixture *f = start();
    f->subscriptions->list[PLAIN].op.warp.fit = FIT_DEEPSTREAM;
    open_for(f, 1, 64);
    expect_first(f, 0, 1, 1);
    CHECK(strstr(f->notice, "output plain") && strstr(f->notice, "fit deepstream") &&
              !strstr(f->notice, "crop"),
          "%s", f->notice);
    geometry_close(&f->geometry);
    open_for(f, 2, 64);
    expect_first(f, 1, 1, 1);
    finish(f);
}

int main(void)
{
    TEST(test_tiles());
    TEST(test_region());
    TEST(test_refused());
    TEST(test_small_batch());
    TEST(test_one_pixel());
    return test_end();
}
