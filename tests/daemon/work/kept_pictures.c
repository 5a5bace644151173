// Kept pictures: lookup, number and lifetimes; and copies of pictures on a device, in memory of
// their own.
#include "daemon/work/crops.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "daemon/device/budget.h"
#include "tests/daemon/fake_driver.h"
#include "tests/test.h"

enum { WIDTH = 30, HEIGHT = 20, MOST = 3 };
static const int64_t LONG_NS = INT64_C(3600000000000);

static int released;
static uint8_t pixels[WIDTH * HEIGHT * 3 / 2];

static void release(void *owner)
{
    (void)owner;
    released++;
}

static int copy_picture(struct backend *backend, const struct image *to, const struct image *from)
{
    (void)backend;
    for (int p = 0; p < image_planes(from); p++)
        for (int y = 0; y < plane_rows(from->format, p, from->height); y++)
            memcpy(to->plane[p].data + y * to->plane[p].stride,
                   from->plane[p].data + y * from->plane[p].stride,
                   plane_row_bytes(from->format, p, from->width));
    return 0;
}

static struct frame make_frame(int number, enum memory memory)
{
    struct frame frame = {
        .image = {.format = PIXEL_NV12, .width = WIDTH, .height = HEIGHT, .memory = memory},
        .info = {.pts_ns = number, .epoch = 5},
        .release = release,
    };
    image_lay_out(&frame.image, pixels);
    return frame;
}

static void add(struct kept_pictures *pictures, int number, enum memory memory)
{
    struct frame frame = make_frame(number, memory);
    memset(pixels, number, sizeof pixels);
    CHECK(kept_pictures_add(pictures, &frame) == 0, "add %d", number);
    frame_release(&frame);
}

static bool find(struct kept_pictures *pictures, int number, uint32_t epoch, struct frame *ret)
{
    const struct frame_info info = {.pts_ns = number, .epoch = epoch};
    return kept_pictures_find(pictures, &info, ret);
}

static void test_on_host(void)
{
    const struct image source = make_frame(0, MEMORY_HOST).image;
    struct kept_pictures *pictures;
    struct frame found;
    released = 0;
    CHECK(kept_pictures_need(&source, MOST) == 0, "no device memory");
    CHECK(kept_pictures_open(&pictures, NULL, &source, MOST, LONG_NS) == 0, "open");
    for (int i = 0; i < 5; i++)
        add(pictures, i, MEMORY_HOST);
    CHECK(released == 2, "the oldest are gone: %d", released);
    CHECK(!find(pictures, 1, 5, &found) && !find(pictures, 3, 4, &found), "not there");
    CHECK(find(pictures, 2, 5, &found) && found.info.pts_ns == 2, "the oldest");
    kept_pictures_close(pictures);
    CHECK(released == 4, "all but what was found: %d", released);
    frame_release(&found);
    CHECK(released == 5, "all");

    CHECK(kept_pictures_open(&pictures, NULL, &source, MOST, 5000000) == 0, "open");
    add(pictures, 0, MEMORY_HOST);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    CHECK(!find(pictures, 0, 5, &found), "too old");
    CHECK(released == 6, "let go of");
    kept_pictures_close(pictures);
}

static void test_copies(void)
{
    struct backend_driver driver = fake_driver;
    const struct device_lease lease = {.driver = &driver};
    const struct image source = make_frame(0, MEMORY_CUDA).image;
    struct kept_pictures *pictures;
    struct frame found[FRAMES_IN_FLIGHT_MAX];
    driver.picture_copy = copy_picture;
    released = 0;
    device_is_full = true;
    CHECK(kept_pictures_open(&pictures, &lease, &source, MOST, LONG_NS) == -ENOMEM, "no room");
    device_is_full = false;
    CHECK(kept_pictures_need(&source, MOST) <= sizeof device_memory, "fits the fake device");
    CHECK(kept_pictures_open(&pictures, &lease, &source, MOST, LONG_NS) == 0 && exports == 1,
          "open");
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++) {
        add(pictures, i, MEMORY_CUDA);
        CHECK(find(pictures, i, 5, &found[i]), "found");
    }
    for (int i = FRAMES_IN_FLIGHT_MAX; i < 20; i++)
        add(pictures, i, MEMORY_CUDA);
    CHECK(released == 20, "no surface is held: %d", released);
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++) {
        const struct plane *plane = found[i].image.plane;
        CHECK(plane[0].data >= device_memory && plane[0].stride == 256 && plane[1].stride == 256,
              "its place");
        CHECK(plane[0].data[0] == i && plane[0].data[(HEIGHT - 1) * 256 + WIDTH - 1] == i &&
                  plane[1].data[(HEIGHT / 2 - 1) * 256 + WIDTH - 1] == i,
              "picture %d is whole", i);
        frame_release(&found[i]);
    }
    kept_pictures_close(pictures);
    CHECK(exports == 0, "the memory is given back");
}

int main(void)
{
    TEST(test_on_host());
    TEST(test_copies());
    return test_end();
}
