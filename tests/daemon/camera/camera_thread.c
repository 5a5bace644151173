// A camera's connections: the device that gets its pictures if the device has no room for some of
// them.
#include "daemon/camera/camera.h"

#include <errno.h>

#include "config/load.h"
#include "daemon/base/log.h"
#include "daemon/source/libav_log.h"
#include "tests/daemon/clips.h"

enum { ROOM = 100000, LARGE = 128 * 96, SMALL = 64 * 48, A_PIXEL = 10, PICTURES = 4 };

// --- a device that is the cpu and has room for one camera's small pictures

static _Atomic int on_device; // jobs
static _Atomic size_t room = ROOM;

static size_t device_bytes(struct backend *backend)
{
    (void)backend;
    return ROOM;
}

static struct memory_need need_by_size(const struct image *src, const struct op *const ops[], int n,
                                       int depth)
{
    (void)ops, (void)n, (void)depth;
    return (struct memory_need){.device = (size_t)src->width * (size_t)src->height * A_PIXEL};
}

static int open_plan(struct backend *backend, struct plan **ret, const struct image *src,
                     const struct op *const ops[], int n, int depth)
{
    if (need_by_size(src, ops, n, depth).device > room)
        return -ENOMEM;
    return cpu_backend.plan_open(backend, ret, src, ops, n, depth);
}

static int submit(struct plan *plan, struct job *job)
{
    on_device++;
    return cpu_backend.submit(plan, job);
}

// --- one camera

struct fixture {
    struct backend_driver device;
    struct config *config;
    struct devices *devices;
    uv_loop_t loop;
    struct event_queue *events;
    struct consumer consumer;
    struct histogram decode, process;
    struct camera camera;
};

static void start(struct fixture *f)
{
    static const char text[] =
        "cameras: {c: {url: clip.mp4, outputs: {o: {size: 32x32, slots: 64, sink: 'ring:/r'}}}}";
    *f = (struct fixture){.device = cpu_backend};
    f->device.name = "device";
    f->device.device_bytes = device_bytes;
    f->device.plan_need = need_by_size;
    f->device.plan_open = open_plan;
    f->device.submit = submit;
    CHECK(config_load_text(&f->config, text, strlen(text), "test", stderr) == 0, "config");
    CHECK(devices_open_with(&f->devices, f->config, &f->device, &cpu_backend) == 0, "devices");
    uv_loop_init(&f->loop);
    CHECK(event_queue_open(&f->events, &f->loop) == 0, "events");
    const struct camera_context context = {
        .devices = f->devices,
        .events = f->events,
        .decode = &f->decode,
        .process = &f->process,
    };
    CHECK(camera_open(&f->camera, f->config->cameras, &context) == 0, "camera");
    pool_attach(f->camera.subscriptions->list[0].output->pool, &f->consumer);
}

static void end(struct fixture *f)
{
    camera_close(&f->camera);
    devices_close(f->devices);
    event_queue_close(f->events);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    uv_loop_close(&f->loop);
    config_free(f->config);
}

// Connects once to the camera, which now shows the clip. Returns the pictures that the device got.
static int connect_to(struct fixture *f, const char *file)
{
    char why[128];
    int before = on_device;
    clips_run("ln -sf %s clip.mp4", file);
    int rc = camera_connect(&f->camera, why, sizeof why);
    CHECK(rc == -ENODATA, "%s: %s", file, why);
    return on_device - before;
}

static void test_smaller_picture(void)
{
    struct fixture f;
    start(&f);
    CHECK(connect_to(&f, "large.mp4") == 0, "no room for it");
    CHECK(connect_to(&f, "small.mp4") == PICTURES, "not on the device");
    CHECK(connect_to(&f, "large.mp4") == 0, "room for it");
    end(&f);
}

static void test_room_again(void)
{
    struct fixture f;
    start(&f);
    room = 0;
    CHECK(connect_to(&f, "small.mp4") == 0, "the device is full");
    room = ROOM;
    CHECK(connect_to(&f, "small.mp4") == PICTURES, "not on the device");
    end(&f);
}

int main(void)
{
    _Static_assert(SMALL * A_PIXEL < ROOM / 100 * 95 && LARGE * A_PIXEL > ROOM, "what has room");
    clips_open();
    clips_make("128x96", PICTURES, "-c:v libx264", "large.mp4");
    clips_make("64x48", PICTURES, "-c:v libx264", "small.mp4");
    log_open(LOG_LEVEL_ERROR);
    libav_log_open();
    TEST(test_smaller_picture());
    TEST(test_room_again());
    clips_close();
    return test_end();
}
