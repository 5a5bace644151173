// A camera's analysis: the pictures that it takes, its device and tables, and its results.
#include "daemon/scene/scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/wire.h"
#include "tests/test.h"

enum { WIDTH = 320, HEIGHT = 180 };

static const int64_t SECOND = 1000000000;

// The device's analysers are the CPU's, counted.
static struct {
    int opened, closed, fails;
    const struct analysis *analysis; // of the last one opened
} device;

static int device_analyser_open(struct backend *backend, struct analyser **ret,
                                const struct analysis *analysis, const struct image *src)
{
    device.opened++;
    device.analysis = analysis;
    return cpu_backend.analyser_open(backend, ret, analysis, src);
}

static void device_analyser_close(struct analyser *analyser)
{
    device.closed++;
    cpu_backend.analyser_close(analyser);
}

static int device_analyse(struct analyser *analyser, const struct image *src,
                          struct analysis_result *ret)
{
    return device.fails ? -EIO : cpu_backend.analyse(analyser, src, ret);
}

struct fixture {
    struct backend_driver driver;
    struct config top;
    struct camera_config config;
    struct devices *devices;
    struct device_lease lease;
    struct scene_report report;
    struct scene *scene;
    uint8_t pixels[WIDTH * HEIGHT * 2];
    int64_t pts_ns;
    uint64_t noise;
};

static struct fixture *start(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    memset(&device, 0, sizeof device);
    f->driver = cpu_backend;
    f->driver.name = "cuda";
    f->driver.takes_cuda = true;
    f->driver.analyser_open = device_analyser_open;
    f->driver.analyser_close = device_analyser_close;
    f->driver.analyse = device_analyse;
    f->top.cpu.workers = 1;
    f->config.grid = (struct dimensions){32, 18};
    f->config.motion.sensitivity = 50;
    CHECK(devices_open_with(&f->devices, &f->top, &f->driver, &cpu_backend) == 0, "devices");
    CHECK(device_acquire(f->devices, NULL, &f->lease) == 0, "lease");
    pthread_mutex_init(&f->report.lock, NULL);
    const struct scene_context context = {&f->config, &f->lease, &f->report};
    CHECK(scene_open(&f->scene, &context) == 0, "open");
    return f;
}

static void end(struct fixture *f)
{
    scene_detach(f->scene);
    scene_close(f->scene);
    CHECK(device.opened == device.closed, "%d opened, %d closed", device.opened, device.closed);
    device_release(&f->lease);
    devices_close(f->devices);
    pthread_mutex_destroy(&f->report.lock);
    free(f);
}

// Draws a scene with noise, and a block at `x` unless that is below 0.
static struct frame draw(struct fixture *f, int width, int height, enum memory memory, int x)
{
    struct frame frame = {
        .image = {.format = PIXEL_YUV420P, .width = width, .height = height, .memory = memory},
        .rate_num = 5,
        .rate_den = 1,
        .info = {.pts_ns = f->pts_ns, .epoch = 1, .source_width = width, .source_height = height},
    };
    image_lay_out(&frame.image, f->pixels);
    for (int i = 0; i < width * height; i++) {
        f->noise = f->noise * 6364136223846793005u + 1442695040888963407u;
        f->pixels[i] = (uint8_t)(80 + i % width / 16 * 5 + (f->noise >> 62));
        if (x >= 0 && i % width >= x && i % width < x + 40 && i / width >= 60 && i / width < 110)
            f->pixels[i] = 230;
    }
    f->pts_ns += SECOND / 5;
    return frame;
}

static struct frame observe(struct fixture *f, enum memory memory, int x)
{
    struct frame frame = draw(f, WIDTH, HEIGHT, memory, x);
    scene_observe(f->scene, &frame);
    return frame;
}

static void test_wanted(void)
{
    struct fixture *f = start();
    struct scene_record record;
    CHECK(!observe(f, MEMORY_HOST, -1).info.scene.known, "nobody asks");
    CHECK(!scene_report_last(&f->report, &record), "nor is there a record");
    scene_want(f->scene, true);
    CHECK(observe(f, MEMORY_HOST, -1).info.scene.known, "a gate asks");
    CHECK(scene_report_last(&f->report, &record) && record.info.pts_ns == SECOND / 5, "a record");
    CHECK(record.columns == 32 && record.rows == 18 && record.luma.pixels == WIDTH * HEIGHT,
          "%dx%d cells", record.columns, record.rows);
    CHECK(record.grid[0] >= 80 && record.grid[0] <= 86 && record.grid[31] > 160,
          "the means: %d, %d", record.grid[0], record.grid[31]);
    scene_want(f->scene, false);
    CHECK(!observe(f, MEMORY_HOST, -1).info.scene.known, "nobody asks any more");
    f->config.stats = true;
    CHECK(observe(f, MEMORY_HOST, -1).info.scene.known, "the key asks");
    struct frame damaged = draw(f, WIDTH, HEIGHT, MEMORY_HOST, -1);
    damaged.info.flags = FRAMED_FLAG_DAMAGED;
    damaged.info.scene.known = damaged.info.scene.moving = true; // from the struct's last user
    scene_observe(f->scene, &damaged);
    CHECK(!damaged.info.scene.known && !damaged.info.scene.moving, "damage");
    CHECK(f->report.analysed == 2, "%d analysed", (int)f->report.analysed);
    end(f);
}

// Returns how many of ten pictures with a block report motion.
static int moves(struct fixture *f)
{
    int moving = 0;
    f->config.stats = true;
    for (int i = 0; i < 20 * 5; i++)
        CHECK(!observe(f, MEMORY_HOST, -1).info.scene.moving, "stillness moves in picture %d", i);
    for (int i = 0; i < 10; i++)
        moving += observe(f, MEMORY_HOST, 20 + 10 * i).info.scene.moving;
    CHECK(f->report.moving == (uint64_t)moving, "%d counted", (int)f->report.moving);
    return moving;
}

static void test_motion(void)
{
    static struct polygon polygon = {4, {{0, 50}, {320, 50}, {320, 120}, {0, 120}}};
    struct fixture *f = start();
    struct scene_record record;
    CHECK(moves(f) >= 8, "a block moves");
    CHECK(scene_report_last(&f->report, &record) && record.motion.count == 1, "its box");
    CHECK(record.motion.box[0].y1 >= 50 && record.motion.box[0].y2 <= 120, "%d to %d",
          record.motion.box[0].y1, record.motion.box[0].y2);
    end(f);
    f = start();
    f->config.motion.mask = (struct polygons){&polygon, 1};
    CHECK(moves(f) == 0, "behind the mask");
    end(f);
    f = start();
    f->config.motion.min_area = 50 * 60;
    CHECK(moves(f) == 0, "smaller than wanted");
    end(f);
}

static void test_device(void)
{
    struct fixture *f = start();
    f->config.stats = true;
    const struct frame there = observe(f, MEMORY_CUDA, -1);
    CHECK(there.info.scene.known && device.opened == 1, "on the device");
    CHECK(device.analysis->statistics.params.black == 16, "limited range");
    scene_detach(f->scene);
    CHECK(device.closed == 1, "nothing is left there");
    CHECK(observe(f, MEMORY_CUDA, -1).info.scene.known && device.opened == 2, "again");
    CHECK(observe(f, MEMORY_HOST, -1).info.scene.known && device.closed == 2, "on the host");
    for (int i = 0; i < 20; i++)
        observe(f, MEMORY_HOST, -1);
    scene_detach(f->scene);
    CHECK(!observe(f, MEMORY_HOST, -1).info.scene.learning, "what is there knows its background");
    CHECK(observe(f, MEMORY_CUDA, -1).info.scene.learning && device.opened == 3, "and back");
    struct frame other = draw(f, WIDTH, HEIGHT, MEMORY_CUDA, -1);
    other.image.colour.range = RANGE_FULL;
    scene_observe(f->scene, &other);
    CHECK(other.info.scene.known && device.opened == 4, "another range");
    CHECK(device.analysis->statistics.params.black == 0, "full range");
    other = draw(f, WIDTH / 2, HEIGHT, MEMORY_CUDA, -1);
    other.image.colour.range = RANGE_FULL;
    scene_observe(f->scene, &other);
    CHECK(other.info.scene.known && device.opened == 5, "another size");
    CHECK(device.analysis->motion.width == WIDTH / 2, "that size");
    CHECK(!device_is_stale(&f->lease), "all is well");
    device.fails = 1;
    other = draw(f, WIDTH / 2, HEIGHT, MEMORY_CUDA, -1);
    other.image.colour.range = RANGE_FULL;
    scene_observe(f->scene, &other);
    CHECK(!other.info.scene.known && device_is_stale(&f->lease), "the device fails");
    end(f);
}

// The analysis restarts, once, if the pictures' rate differs from the stream's stated one.
static void test_rate(void)
{
    struct fixture *f = start();
    f->config.stats = true;
    for (int i = 0; i < 40; i++)
        observe(f, MEMORY_CUDA, -1);
    CHECK(device.opened == 1 && device.analysis->motion.params.rate_num == 5, "as it says");
    end(f);
    f = start();
    f->config.stats = true;
    for (int i = 0; i < 40; i++) {
        observe(f, MEMORY_CUDA, -1);
        f->pts_ns += SECOND - SECOND / 5;
    }
    CHECK(device.opened == 2, "%d opened", device.opened);
    CHECK(device.analysis->motion.params.rate_num == 1000 &&
              device.analysis->motion.params.rate_den == 1000,
          "%d/%d", device.analysis->motion.params.rate_num,
          device.analysis->motion.params.rate_den);
    end(f);
}

// The decoder later switches to keyframes alone, and back. A gap of seconds is not another rate.
static void test_later_rate(void)
{
    static const struct {
        int pictures, opened;
        int64_t more; // added to the 200 ms between pictures
    } stretches[] = {
        {40, 1, 0},          {1, 1, 20 * SECOND}, {64, 1, 0},
        {64, 2, 4 * SECOND}, {1, 2, 60 * SECOND}, {64, 3, 0},
    };
    struct fixture *f = start();
    f->config.stats = true;
    for (size_t i = 0; i < sizeof stretches / sizeof *stretches; i++) {
        for (int k = 0; k < stretches[i].pictures; k++) {
            f->pts_ns += stretches[i].more;
            observe(f, MEMORY_CUDA, -1);
        }
        CHECK(device.opened == stretches[i].opened, "%d opened after stretch %zu", device.opened,
              i);
    }
    CHECK(device.analysis->motion.params.rate_num == 5000, "%d/%d",
          device.analysis->motion.params.rate_num, device.analysis->motion.params.rate_den);
    end(f);
}

static void test_highest_rate(void)
{
    struct fixture *f = start();
    f->config.stats = true;
    for (int i = 0; i < 60; i++) {
        CHECK(observe(f, MEMORY_HOST, -1).info.scene.known, "1000 pictures a second, at %d", i);
        f->pts_ns += SECOND / 1000 - SECOND / 5;
    }
    end(f);
}

// A mask that leaves nothing is reported once, and pictures stay unknown until the picture changes.
static void test_refused(void)
{
    static struct polygon polygon = {4, {{0, 0}, {320, 0}, {320, 180}, {0, 180}}};
    struct fixture *f = start();
    f->config.stats = true;
    f->config.motion.mask = (struct polygons){&polygon, 1};
    for (int i = 0; i < 3; i++) {
        const struct frame frame = observe(f, MEMORY_CUDA, -1);
        CHECK(!frame.info.scene.known && frame.info.scene.refused, "all of it is masked");
    }
    CHECK(device.opened == 0, "nothing to open");
    f->config.motion.mask = (struct polygons){0};
    CHECK(!observe(f, MEMORY_CUDA, -1).info.scene.known, "not tried again");
    struct frame other = draw(f, WIDTH, HEIGHT - 2, MEMORY_CUDA, -1);
    scene_observe(f->scene, &other);
    CHECK(other.info.scene.known && !other.info.scene.refused, "of another size");
    end(f);
}

static void test_alarm(void)
{
    struct fixture *f = start();
    struct scene_record record = {0};
    int raised = 0, cleared = 0;
    f->config.stats = true;
    for (int i = 0; i < 40 * 5; i++) {
        struct frame frame = draw(f, WIDTH, HEIGHT, MEMORY_HOST, -1);
        if (i >= 10 * 5 && i < 20 * 5)
            for (int k = 0; k < WIDTH * HEIGHT; k++)
                f->pixels[k] = 16 + f->pixels[k] % 4;
        scene_observe(f->scene, &frame);
        CHECK(scene_report_last(&f->report, &record), "a record");
        raised += record.raised == 1 << ALARM_DARK;
        cleared += record.cleared == 1 << ALARM_DARK;
        if (i == 19 * 5)
            CHECK(f->report.alarms == 1 << ALARM_DARK && record.alarms == 1 << ALARM_DARK, "dark");
    }
    CHECK(raised == 1 && cleared == 1 && f->report.raised[ALARM_DARK] == 1, "%d raised, %d cleared",
          raised, cleared);
    CHECK(f->report.alarms == 0, "%x", f->report.alarms);
    end(f);
}

// The analysis has ended: the last result no longer describes the pictures.
static void test_end_of_analysis(void)
{
    struct fixture *f = start();
    struct scene_record record;
    scene_want(f->scene, true);
    for (int i = 0; i < 10 * 5; i++) {
        struct frame frame = draw(f, WIDTH, HEIGHT, MEMORY_HOST, -1);
        memset(f->pixels, 16, WIDTH * HEIGHT);
        scene_observe(f->scene, &frame);
    }
    CHECK(f->report.alarms == 1 << ALARM_DARK, "dark: %x", f->report.alarms);
    scene_want(f->scene, false);
    CHECK(f->report.alarms == 0 && !scene_report_last(&f->report, &record), "it has ended");
    CHECK(f->report.analysed == 50, "counters stay");
    scene_want(f->scene, true);
    CHECK(observe(f, MEMORY_HOST, -1).info.scene.alarms == 0, "and is not taken up again");
    CHECK(scene_report_last(&f->report, &record) && record.cleared == 0, "nothing to clear");
    end(f);
}

int main(void)
{
    TEST(test_wanted());
    TEST(test_motion());
    TEST(test_device());
    TEST(test_rate());
    TEST(test_later_rate());
    TEST(test_highest_rate());
    TEST(test_refused());
    TEST(test_alarm());
    TEST(test_end_of_analysis());
    return test_end();
}
