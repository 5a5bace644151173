// Renditions: the same JPEG from pictures in any memory, with a plan on the device that is opened
// once; and tensors turned back into their levels, of any type, layout and order.
#include "daemon/view/rendition.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

enum { WIDTH = 192, HEIGHT = 108, SIDE = 64 };

static struct {
    int opened, closed, submitted;
    bool fails;
    bool hangs; // the next job is held in `plan` and `job`
    struct plan *plan;
    struct job *job;
} device;

static int open_plan(struct backend *backend, struct plan **ret, const struct image *src,
                     const struct op *const ops[], int n, int depth)
{
    device.opened++;
    CHECK(src->memory == MEMORY_CUDA, "a plan of a picture on the host");
    return cpu_backend.plan_open(backend, ret, src, ops, n, depth);
}

static void close_plan(struct plan *plan)
{
    device.closed++;
    cpu_backend.plan_close(plan);
}

static int submit(struct plan *plan, struct job *job)
{
    device.submitted++;
    if (device.hangs) {
        device.plan = plan;
        device.job = job;
        return 0;
    }
    job->src.memory = MEMORY_HOST; // its real place
    return device.fails ? -EIO : cpu_backend.submit(plan, job);
}

struct fixture {
    struct backend_driver driver;
    struct config top;
    struct devices *devices;
    struct device_lease lease;
    _Atomic size_t taken;
    struct rendition rendition;
    uint8_t pixels[WIDTH * HEIGHT * 3 / 2];
    char why[256];
};

// The needs of each job, and a device's memory for cameras.
enum { A_JOB = 1000, ROOM = 16 * A_JOB };

static struct memory_need plan_need(const struct image *src, const struct op *const ops[], int n,
                                    int depth)
{
    (void)src, (void)ops, (void)n;
    return (struct memory_need){.device = (size_t)depth * A_JOB};
}

static size_t device_bytes(struct backend *backend)
{
    (void)backend;
    return 2 * ROOM;
}

static struct fixture *start(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    memset(&device, 0, sizeof device);
    f->rendition.taken = &f->taken;
    f->driver = cpu_backend;
    f->driver.name = "cuda";
    f->driver.takes_cuda = true;
    f->driver.depth = 4;
    f->driver.plan_open = open_plan;
    f->driver.plan_close = close_plan;
    f->driver.submit = submit;
    f->driver.plan_need = plan_need;
    f->driver.device_bytes = device_bytes;
    f->top.cpu.workers = 1;
    f->top.cuda.memory.n = ROOM;
    CHECK(devices_open_with(&f->devices, &f->top, &f->driver, &cpu_backend) == 0, "devices");
    CHECK(device_acquire(f->devices, NULL, &f->lease) == 0, "lease");
    for (int i = 0; i < WIDTH * HEIGHT * 3 / 2; i++)
        f->pixels[i] = (uint8_t)(16 + (i * 7 + i / WIDTH * 3) % 220);
    return f;
}

static void finish(struct fixture *f)
{
    rendition_close(&f->rendition, &f->lease);
    CHECK(f->taken == 0, "%zu bytes are taken", f->taken);
    CHECK(device.opened == device.closed, "%d plans, %d closed", device.opened, device.closed);
    device_release(&f->lease);
    devices_close(f->devices);
    free(f);
}

static struct frame frame_of(struct fixture *f, enum memory memory)
{
    struct frame frame = {.image = {.format = PIXEL_NV12,
                                    .width = WIDTH,
                                    .height = HEIGHT,
                                    .memory = memory,
                                    .colour = {MATRIX_BT709, RANGE_LIMITED, SITING_LEFT}}};
    image_lay_out(&frame.image, f->pixels);
    return frame;
}

static int render(struct fixture *f, const struct rendition_params *params, enum memory memory,
                  const uint8_t **file, size_t *size)
{
    struct frame frame = frame_of(f, memory);
    int rc = rendition_read(&f->rendition, params, &frame, &f->lease, f->why, sizeof f->why);
    frame_release(&frame);
    return rc < 0 ? rc : rendition_encode(&f->rendition, file, size, f->why, sizeof f->why);
}

static void test_device(void)
{
    const struct rendition_params params = {.plane = -1, .width = SIDE};
    struct fixture *f = start();
    const uint8_t *file;
    uint8_t first[65536];
    size_t size, first_size;
    CHECK(render(f, &params, MEMORY_HOST, &file, &first_size) == 0 && first_size < sizeof first,
          "host: %s", f->why);
    memcpy(first, file, first_size);
    CHECK(device.opened == 0, "a plan for a picture on the host");
    for (int i = 0; i < 3; i++) {
        CHECK(render(f, &params, MEMORY_CUDA, &file, &size) == 0, "device: %s", f->why);
        CHECK(size == first_size && memcmp(file, first, size) == 0, "another JPEG on the device");
    }
    CHECK(device.opened == 1 && device.submitted == 3, "%d plans", device.opened);
    device.fails = true;
    CHECK(render(f, &params, MEMORY_CUDA, &file, &size) == -EIO && *f->why, "the device fails");
    CHECK(device.closed == 1, "its plan stays");
    device.fails = false;
    CHECK(render(f, &params, MEMORY_CUDA, &file, &size) == 0 && size == first_size, "it is back");
    CHECK(strstr(rendition_describe(&f->rendition), "\"width\":64,\"height\":36"), "its shape");
    finish(f);
}

static void release(void *owner)
{
    atomic_store((_Atomic bool *)owner, true);
}

// A job that never ends is waited for briefly, and keeps its picture. The next one is then made.
static void test_hangs(void)
{
    const struct rendition_params params = {.plane = -1, .width = SIDE};
    struct fixture *f = start();
    _Atomic bool released = false;
    struct frame frame = frame_of(f, MEMORY_CUDA);
    int rc;
    frame.owner = &released;
    frame.release = release;
    device.hangs = true;
    for (int i = 0; i < 2; i++) {
        rc = rendition_read(&f->rendition, &params, &frame, &f->lease, f->why, sizeof f->why);
        CHECK(rc == -ETIMEDOUT && strstr(f->why, "more than 1 s"), "%d: %s", rc, f->why);
    }
    CHECK(device.submitted == 1 && rendition_is_busy(&f->rendition), "%d jobs", device.submitted);
    frame_release(&frame);
    CHECK(!atomic_load(&released), "the device still reads the picture");
    device.hangs = false;
    CHECK(submit(device.plan, device.job) == 0, "it goes on");
    while (rendition_is_busy(&f->rendition))
        usleep(1000);
    CHECK(atomic_load(&released), "the picture is given back");
    frame = frame_of(f, MEMORY_CUDA);
    rc = rendition_read(&f->rendition, &params, &frame, &f->lease, f->why, sizeof f->why);
    CHECK(rc == 0 && device.opened == 1, "%d: %s", rc, f->why);
    frame_release(&frame);
    finish(f);
}

// A preview takes one picture's memory from the device, and none of that reserved for later
// cameras.
static void test_memory(void)
{
    const struct rendition_params params = {.plane = -1, .width = SIDE};
    struct fixture *f = start();
    const uint8_t *file;
    size_t size, left;
    CHECK(device_reserve(&f->lease, ROOM - 3 * A_JOB, &left) == 0, "cameras");
    CHECK(render(f, &params, MEMORY_CUDA, &file, &size) == 0, "room for one picture: %s", f->why);
    CHECK(device_reserve(&f->lease, A_JOB, &left) == 0, "a camera more, and a picture of it");
    rendition_close(&f->rendition, &f->lease);
    CHECK(device_reserve(&f->lease, 1, &left) == 0, "one more byte");
    CHECK(render(f, &params, MEMORY_CUDA, &file, &size) == -ENOSPC, "it takes what cameras need");
    CHECK(strstr(f->why, "1 KiB of device memory, 0 KiB are left for previews"), "%s", f->why);
    CHECK(device_reserve(&f->lease, 2 * A_JOB - 1, &left) == 0, "%zu are left of it", left);
    finish(f);
}

static void test_turned(void)
{
    const struct rendition_params params = {.plane = -1, .width = SIDE};
    struct fixture *f = start();
    struct frame frame = frame_of(f, MEMORY_HOST);
    frame.image.orientation = ORIENTATION_QUARTER;
    CHECK(rendition_read(&f->rendition, &params, &frame, &f->lease, f->why, sizeof f->why) == 0,
          "%s", f->why);
    CHECK(f->rendition.op.dst.width == 64 && f->rendition.op.dst.height == 114, "%dx%d",
          f->rendition.op.dst.width, f->rendition.op.dst.height);
    finish(f);
}

static struct op_params tensor_params(enum dtype dtype, enum layout layout, enum order order)
{
    struct op_params params = {.kind = OP_WARP};
    struct warp_params *warp = &params.warp;
    *warp = (struct warp_params){.width = SIDE,
                                 .height = SIDE,
                                 .fit = FIT_STRETCH,
                                 .dtype = dtype,
                                 .layout = layout,
                                 .order = order,
                                 .scale = 1};
    for (int c = 0; c < 3; c++) {
        const bool is_float = dtype == DTYPE_F16 || dtype == DTYPE_F32;
        warp->std[c] = is_float ? 0.2 + 0.03 * c : 1;
        warp->mean[c] = is_float ? 0.4 + 0.05 * c : dtype == DTYPE_S8 ? 128 : 0;
        warp->scale = is_float ? 1 / 255.0 : 1;
    }
    return params;
}

// Compares with the same geometry as u8, rgb, nhwc.
static void check_tensor(struct fixture *f, const uint8_t *expected, const struct op_params *params)
{
    const struct frame frame = frame_of(f, MEMORY_HOST);
    const struct warp_params *warp = &params->warp;
    const int n = warp->order == ORDER_GRAY ? 1 : 3;
    struct op op;
    struct image result;
    struct tensor_image shown;
    CHECK(op_init(&op, params, &frame.image) == 0, "op");
    uint8_t *data = malloc(op.dst_bytes), *to = malloc(tensor_image_bytes(&op));
    op_lay_out(&op, &result, data);
    op_reference(&result, &frame.image, &op, (struct band){0, SIDE}, false);
    for (int plane = -1; plane < n; plane++) {
        int wrong = 0;
        CHECK(tensor_image_make(&shown, to, &op, params, data, plane) && shown.n == n, "shown");
        for (int i = 0; i < SIDE * SIDE * n; i++) {
            const int c = i % n, colour = warp->order == ORDER_BGR ? 2 - c : c;
            const struct component at = component_of(PIXEL_GBRP, colour);
            if (plane >= 0 && c != plane)
                continue;
            const uint8_t *level = plane < 0 && n == 3 ? shown.image.plane[at.plane].data + i / n
                                                       : shown.image.plane[0].data + i / n;
            wrong += *level != expected[i / n * n + colour];
        }
        CHECK(wrong == 0, "type %d, layout %d, order %d, plane %d: %d levels", warp->dtype,
              warp->layout, warp->order, plane, wrong);
    }
    for (int c = 0; c < n; c++) {
        const struct channel *channel = &shown.channel[c];
        const int colour = warp->order == ORDER_BGR ? 2 - c : c;
        int least = 255, most = 0;
        for (int i = colour; i < SIDE * SIDE * n; i += n) {
            least = expected[i] < least ? expected[i] : least;
            most = expected[i] > most ? expected[i] : most;
        }
        const double min = (least * warp->scale - warp->mean[c]) / warp->std[c];
        const double max = (most * warp->scale - warp->mean[c]) / warp->std[c];
        CHECK(fabs(channel->min - min) < 2e-3 && fabs(channel->max - max) < 2e-3,
              "channel %d: %g to %g, not %g to %g", c, channel->min, channel->max, min, max);
        CHECK(channel->mean > channel->min && channel->mean < channel->max, "mean");
        CHECK(channel->name[0] == (n == 1 ? "gray" : "rgb")[n == 1 ? 0 : colour], "%s",
              channel->name);
    }
    CHECK(!tensor_image_make(&shown, to, &op, params, data, n), "a plane that is not there");
    op_finish(&op);
    free(data);
    free(to);
}

static void test_tensors(void)
{
    static const enum order orders[] = {ORDER_RGB, ORDER_BGR, ORDER_GRAY};
    struct fixture *f = start();
    const struct frame frame = frame_of(f, MEMORY_HOST);
    for (int o = 0; o < 3; o++) {
        const bool gray = orders[o] == ORDER_GRAY;
        const struct op_params plain =
            tensor_params(DTYPE_U8, LAYOUT_NHWC, gray ? ORDER_GRAY : ORDER_RGB);
        uint8_t expected[SIDE * SIDE * 3];
        struct image result;
        struct op op;
        CHECK(op_init(&op, &plain, &frame.image) == 0, "op");
        op_lay_out(&op, &result, expected);
        op_reference(&result, &frame.image, &op, (struct band){0, SIDE}, false);
        op_finish(&op);
        for (int dtype = DTYPE_U8; dtype <= DTYPE_F32; dtype++)
            for (int layout = LAYOUT_NCHW; layout <= LAYOUT_NHWC; layout++) {
                const struct op_params params =
                    tensor_params((enum dtype)dtype, (enum layout)layout, orders[o]);
                check_tensor(f, expected, &params);
            }
    }
    finish(f);
}

// Large tensors are shown as long as all of them together have room.
static void test_large(void)
{
    enum { LARGE = 2048, TAKEN = LARGE * LARGE * (3 * 4 + 3 + 3), ROOM_FOR = 3 };
    struct rendition_params params = {
        .tensor = true, .op = tensor_params(DTYPE_F32, LAYOUT_NCHW, ORDER_RGB), .plane = -1};
    struct fixture *f = start();
    struct rendition many[ROOM_FOR + 1];
    struct frame frame = frame_of(f, MEMORY_HOST);
    params.op.warp.width = params.op.warp.height = LARGE;
    _Static_assert(ROOM_FOR == RENDITIONS_BYTES_MAX / TAKEN, "so many have room");
    for (int i = 0; i <= ROOM_FOR; i++) {
        many[i] = (struct rendition){.taken = &f->taken};
        const int rc = rendition_read(&many[i], &params, &frame, &f->lease, f->why, sizeof f->why);
        CHECK(rc == (i < ROOM_FOR ? 0 : -E2BIG), "%d: %d, %s", i, rc, f->why);
    }
    CHECK(strstr(f->why, "it takes 72 MiB of memory: previews may have 256 MiB together, and the "
                         "others have 216 MiB"),
          "%s", f->why);
    rendition_close(&many[0], &f->lease);
    CHECK(rendition_read(&many[ROOM_FOR], &params, &frame, &f->lease, f->why, sizeof f->why) == 0,
          "room again: %s", f->why);
    for (int i = 0; i <= ROOM_FOR; i++)
        rendition_close(&many[i], &f->lease);
    finish(f);
}

int main(void)
{
    TEST(test_device());
    TEST(test_hangs());
    TEST(test_memory());
    TEST(test_turned());
    TEST(test_tensors());
    TEST(test_large());
    return test_end();
}
