// Several GPUs, with a driver for three that only counts calls: the GPU of each camera, which it
// keeps; takeover from a failed GPU, and the return of its cameras.
#include "daemon/device/devices.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "daemon/codec/nvdec.h"
#include "tests/test.h"

enum { GPUS = 3, WAIT_MS = 20000, MIB = 1 << 20 };

static struct gpu {
    _Atomic int opens, closes, resets;
    _Atomic int failures; // number of next opens that fail
    size_t bytes;
    bool has_nvdec;
    _Atomic int nvdecs;
    struct decode_device nvdec;
} gpus[GPUS];
static _Atomic int cpus;

// Replaces NVDEC: the linker sends all calls to these two functions.
int __wrap_decode_device_open(struct decode_device **ret, int ordinal, int threads);
void __wrap_decode_device_close(struct decode_device *device);

int __wrap_decode_device_open(struct decode_device **ret, int ordinal, int threads)
{
    CHECK(threads == 7, "cuda.decoders: %d", threads);
    if (!gpus[ordinal].has_nvdec)
        return -ENODEV;
    gpus[ordinal].nvdecs++;
    *ret = &gpus[ordinal].nvdec;
    return 0;
}

void __wrap_decode_device_close(struct decode_device *device)
{
    for (int i = 0; i < GPUS; i++)
        gpus[i].nvdecs -= device == &gpus[i].nvdec;
}

static int count(void)
{
    return GPUS;
}

static int open_gpu(struct backend **ret, const struct backend_options *options)
{
    struct gpu *gpu = &gpus[options->device];
    if (options->device >= GPUS)
        return -ENODEV;
    if (gpu->failures > 0) {
        gpu->failures--;
        return -ENODEV;
    }
    CHECK(gpu->opens == gpu->closes, "GPU %d is open already", options->device);
    gpu->opens++;
    *ret = (struct backend *)gpu;
    return 0;
}

static void close_gpu(struct backend *backend)
{
    ((struct gpu *)backend)->closes++;
}

static void reset(const struct backend_options *options)
{
    gpus[options->device].resets++;
}

static const char *describe(struct backend *backend)
{
    (void)backend;
    return "made up";
}

static size_t device_bytes(struct backend *backend)
{
    return ((struct gpu *)backend)->bytes;
}

// The GPU's number in each byte.
static const uint8_t *device_uuid(struct backend *backend)
{
    static uint8_t uuids[GPUS][16];
    const int number = (int)((struct gpu *)backend - gpus);
    memset(uuids[number], 0x10 + number, 16);
    return uuids[number];
}

static struct memory_need plan_need(const struct image *src, const struct op *const ops[], int n,
                                    int depth)
{
    (void)ops, (void)n, (void)depth;
    return (struct memory_need){.device = (size_t)src->width * MIB};
}

static const struct backend_driver gpu_driver = {
    .name = "cuda",
    .takes_cuda = true,
    .count = count,
    .open = open_gpu,
    .close = close_gpu,
    .describe = describe,
    .device_bytes = device_bytes,
    .device_uuid = device_uuid,
    .plan_need = plan_need,
    .reset = reset,
};

static int open_cpu(struct backend **ret, const struct backend_options *options)
{
    (void)options;
    cpus++;
    *ret = (struct backend *)&cpus;
    return 0;
}

static void close_cpu(struct backend *backend)
{
    (void)backend;
    cpus--;
}

static const struct backend_driver cpu_driver = {
    .name = "cpu",
    .open = open_cpu,
    .close = close_cpu,
    .describe = describe,
};

static struct config config;

// Opens all GPUs, with `bytes` of memory each.
static struct devices *start(size_t bytes)
{
    struct devices *devices = NULL;
    memset((void *)gpus, 0, sizeof gpus);
    cpus = 0;
    for (int i = 0; i < GPUS; i++)
        gpus[i] = (struct gpu){.bytes = bytes, .has_nvdec = true};
    config.cuda.decoders = 7;
    CHECK(devices_open_with(&devices, &config, &gpu_driver, &cpu_driver) == 0, "open");
    return devices;
}

static void end(struct devices *devices)
{
    devices_close(devices);
    for (int i = 0; i < GPUS; i++)
        CHECK(gpus[i].opens == gpus[i].closes && gpus[i].nvdecs == 0, "GPU %d is open", i);
    CHECK(cpus == 0, "the cpu is open");
    config = (struct config){0};
}

// A camera with one output. Its picture's width and height are its cost in MiB.
struct camera {
    struct output_config output;
    struct camera_config config;
    struct device_lease lease;
};

static struct camera camera_of(int side)
{
    struct camera camera = {
        .output = {.size = {8, 8}, .slots = 3},
        .config = {.name = "gate", .decode.by = DECODE_CPU, .threads = 1, .n_outputs = 1},
    };
    camera.output.fill = (struct levels){.n = 1};
    camera.output.tensor.scale.value = 1;
    camera.output.tensor.mean.n = 1;
    camera.output.tensor.std = (struct channels){1, {1}};
    camera.config.picture = (struct dimensions){side, side};
    return camera;
}

static void acquire(struct devices *devices, struct camera *camera)
{
    camera->config.outputs = &camera->output;
    CHECK(device_acquire(devices, &camera->config, &camera->lease) == 0, "acquire");
    CHECK(camera->lease.share.bytes >= (size_t)camera->config.picture.width * MIB, "%zu bytes",
          camera->lease.share.bytes);
}

static void is_on(struct camera *camera, int number, const char *when)
{
    const struct device_lease *lease = &camera->lease;
    CHECK(lease->number == number && !device_is_stale(lease), "%s: on %d, not %d, %d", when,
          lease->number, number, device_is_stale(lease));
    CHECK(number < 0 ? lease->driver == &cpu_driver
                     : lease->backend == (struct backend *)&gpus[number],
          "%s: another backend", when);
}

// Follows a move, as a camera's thread does between two pictures.
static void follow(struct devices *devices, struct camera *camera)
{
    CHECK(device_is_stale(&camera->lease), "it may stay");
    device_release(&camera->lease);
    acquire(devices, camera);
}

static bool works(struct devices *devices, int gpu)
{
    struct device_status status[DEVICES_MAX];
    for (int ms = 0; ms < WAIT_MS; ms += 10) {
        devices_status(devices, status);
        if (status[gpu].works)
            return true;
        usleep(10000);
    }
    return false;
}

// --- placement

static void test_least_loaded(void)
{
    struct devices *devices = start((size_t)10000 * MIB);
    struct camera small[6], large = camera_of(100), late = camera_of(8);
    for (int i = 0; i < 6; i++) {
        small[i] = camera_of(8);
        acquire(devices, &small[i]);
        is_on(&small[i], i % GPUS, "one after another");
    }
    acquire(devices, &large);
    is_on(&large, 0, "all are equal");
    for (int i = 1; i < GPUS; i++) {
        device_release(&small[i].lease);
        acquire(devices, &small[i]);
        is_on(&small[i], i, "a camera that comes again stays");
    }
    acquire(devices, &late);
    is_on(&late, 1, "the large one takes more memory");
    for (int i = 0; i < 6; i++)
        device_release(&small[i].lease);
    device_release(&late.lease);
    acquire(devices, &late);
    is_on(&late, 1, "however empty others are");
    device_release(&late.lease);
    device_release(&large.lease);
    late.lease = (struct device_lease){0};
    acquire(devices, &late);
    is_on(&late, 0, "nothing is left of those that went");
    device_release(&late.lease);
    end(devices);
}

// NVDEC's load counts before memory.
static void test_nvdec_first(void)
{
    struct camera_config wanted = {.name = "gate", .threads = 1}; // decode: auto
    config.cameras = &wanted;
    config.n_cameras = 1;
    struct devices *devices = start((size_t)10000 * MIB);
    struct camera cpu = camera_of(500), nvdec = camera_of(8), next = camera_of(8);
    nvdec.config.decode.by = next.config.decode.by = DECODE_AUTO;
    device_release(&cpu.lease); // an empty lease
    acquire(devices, &nvdec);
    CHECK(nvdec.lease.nvdec == &gpus[0].nvdec, "another GPU's NVDEC");
    acquire(devices, &cpu);
    is_on(&cpu, 1, "NVDEC of 0 is busy");
    acquire(devices, &next);
    is_on(&next, 2, "both others are idle, 1 has less memory");
    device_release(&next.lease);
    struct camera last = next;
    last.lease = (struct device_lease){0};
    acquire(devices, &next);
    acquire(devices, &last);
    is_on(&last, 1, "NVDEC of 1 alone is idle");
    CHECK(last.lease.nvdec == &gpus[1].nvdec, "another GPU's NVDEC");
    device_release(&cpu.lease);
    device_release(&nvdec.lease);
    device_release(&next.lease);
    device_release(&last.lease);
    end(devices);
}

static void test_choices(void)
{
    config.cuda.devices = (struct gpu_list){2, {2, 0}};
    struct devices *devices = start((size_t)10000 * MIB);
    struct camera camera[3] = {camera_of(8), camera_of(8), camera_of(8)};
    struct device_status status[DEVICES_MAX];
    CHECK(gpus[1].opens == 0, "a GPU that is not listed was opened");
    CHECK(devices_status(devices, status) == 3 && status[0].number == 2 && status[1].number == 0 &&
              status[2].number == -1 && status[0].uuid[15] == 0x12,
          "the devices");
    camera[0].config.device = (struct gpu_choice){.by = GPU_BY_NUMBER, .number = 0};
    camera[1].config.device = (struct gpu_choice){.by = GPU_BY_UUID};
    memset(camera[1].config.device.uuid, 0x10, 16);
    camera[2].config.device = (struct gpu_choice){.by = GPU_BY_NUMBER, .number = 1};
    for (int i = 0; i < 3; i++)
        acquire(devices, &camera[i]);
    is_on(&camera[0], 0, "by number");
    is_on(&camera[1], 0, "by UUID");
    is_on(&camera[2], 2, "one that is not there: the one with most room");
    for (int i = 0; i < 3; i++)
        device_release(&camera[i].lease);
    end(devices);
}

// A choice that matches no GPU gives a warning, or is refused if a GPU is demanded.
static void test_missing_choice(enum backend_kind kind, int expected)
{
    struct camera camera = camera_of(8);
    char why[256] = "";
    camera.config.outputs = &camera.output;
    camera.config.device = (struct gpu_choice){.by = GPU_BY_NUMBER, .number = 9};
    config.backend = kind;
    config.cameras = &camera.config;
    config.n_cameras = 1;
    struct devices *devices = start((size_t)10000 * MIB);
    int rc = devices_admit(devices, &config, why, sizeof why);
    CHECK(rc == expected && !*why == !expected, "%d: %s", rc, why);
    camera.config.device.number = 2;
    rc = devices_admit(devices, &config, why, sizeof why);
    CHECK(rc == 0, "%d: %s", rc, why);
    end(devices);
}

// If GPUs are demanded, none of those listed may be missing.
static void test_missing_gpu(void)
{
    struct devices *devices;
    config.cuda.devices = (struct gpu_list){2, {0, 1}};
    devices = start((size_t)100 * MIB);
    end(devices);
    for (int demanded = 0; demanded < 2; demanded++) {
        config.cuda.devices.n = 2 * demanded;
        config.cuda.devices.number[1] = 1;
        config.cuda.decoders = 7;
        config.backend = demanded ? BACKEND_CUDA : BACKEND_AUTO;
        gpus[1].failures = 1;
        int rc = devices_open_with(&devices, &config, &gpu_driver, &cpu_driver);
        CHECK(rc == (demanded ? -ENODEV : 0), "%d", rc);
        if (rc < 0)
            continue;
        struct device_status status[DEVICES_MAX];
        CHECK(devices_status(devices, status) == 3 && status[1].number == 2, "0, 2 and the cpu");
        devices_close(devices);
    }
    config = (struct config){0};
}

// --- memory

static void test_no_room(void)
{
    struct devices *devices = start((size_t)100 * MIB);
    struct camera camera = camera_of(8), chosen = camera_of(8);
    size_t left;
    acquire(devices, &camera);
    CHECK(device_reserve(&camera.lease, (size_t)94 * MIB, &left) == 0, "%zu left", left);
    chosen.config.device = (struct gpu_choice){.by = GPU_BY_NUMBER, .number = 0};
    acquire(devices, &chosen);
    is_on(&chosen, 0, "what was chosen");
    CHECK(device_reserve(&chosen.lease, (size_t)8 * MIB, &left) == -ENOSPC, "%zu left", left);
    device_avoid(&chosen.lease);
    follow(devices, &chosen);
    is_on(&chosen, 1, "another has room");
    device_avoid(&chosen.lease);
    follow(devices, &chosen);
    is_on(&chosen, 2, "and another");
    device_avoid(&chosen.lease);
    follow(devices, &chosen);
    is_on(&chosen, -1, "then the cpu");
    device_reconsider(&chosen.lease);
    follow(devices, &chosen);
    is_on(&chosen, 0, "what it chooses may have room again");

    device_avoid(&camera.lease);
    device_unreserve(&camera.lease, (size_t)94 * MIB);
    follow(devices, &camera);
    is_on(&camera, 1, "without a choice");
    device_reconsider(&camera.lease);
    is_on(&camera, 1, "it belongs there now");
    device_release(&camera.lease);
    device_release(&chosen.lease);
    end(devices);
}

// --- failure

static void test_failure(void)
{
    struct devices *devices = start((size_t)10000 * MIB);
    struct camera camera[6];
    for (int i = 0; i < 6; i++) {
        camera[i] = camera_of(8);
        acquire(devices, &camera[i]);
    }
    gpus[1].failures = 1;
    device_failed(&camera[1].lease, -EIO);
    device_failed(&camera[4].lease, -EIO);
    CHECK(devices_fallbacks(devices) == 1, "%d fallbacks", (int)devices_fallbacks(devices));
    for (int i = 0; i < 6; i++)
        CHECK(device_is_stale(&camera[i].lease) == (i % GPUS == 1), "camera %d", i);
    follow(devices, &camera[1]);
    follow(devices, &camera[4]);
    is_on(&camera[1], 0, "the first with most room");
    is_on(&camera[4], 2, "then the other");
    CHECK(works(devices, 1), "it does not come back");
    CHECK(gpus[1].resets == 1 && gpus[0].opens == 1 && gpus[2].opens == 1, "others were touched");
    for (int i = 0; i < 6; i++)
        CHECK(device_is_stale(&camera[i].lease) == (i % GPUS == 1), "camera %d goes home", i);
    follow(devices, &camera[1]);
    follow(devices, &camera[4]);
    is_on(&camera[1], 1, "home");
    is_on(&camera[4], 1, "home");
    for (int i = 0; i < 6; i++)
        device_release(&camera[i].lease);
    end(devices);
}

// A guest moves on when its host fails, finally to the CPU; the first GPU to come back takes it.
static void test_all_fail(void)
{
    struct devices *devices = start((size_t)10000 * MIB);
    struct camera camera = camera_of(8), late = camera_of(8);
    gpus[0].failures = 1000;
    gpus[1].failures = 1000;
    acquire(devices, &camera);
    for (int gpu = 0; gpu < GPUS; gpu++) {
        is_on(&camera, gpu, "the next");
        device_failed(&camera.lease, -EIO);
        follow(devices, &camera);
    }
    CHECK(camera.lease.number == -1 || camera.lease.number == 2, "on %d", camera.lease.number);
    acquire(devices, &late);
    CHECK(works(devices, 2), "the last does not come back");
    if (device_is_stale(&camera.lease))
        follow(devices, &camera);
    if (device_is_stale(&late.lease))
        follow(devices, &late);
    is_on(&camera, 2, "a guest of the last");
    is_on(&late, 2, "whose home that becomes");
    gpus[0].failures = 0;
    CHECK(works(devices, 0), "the first does not come back");
    follow(devices, &camera);
    is_on(&camera, 0, "home");
    is_on(&late, 2, "home");
    device_release(&camera.lease);
    device_release(&late.lease);
    end(devices);
}

int main(void)
{
    TEST(test_least_loaded());
    TEST(test_nvdec_first());
    TEST(test_choices());
    TEST(test_missing_choice(BACKEND_AUTO, 0));
    TEST(test_missing_choice(BACKEND_CUDA, -ENODEV));
    TEST(test_missing_gpu());
    TEST(test_no_room());
    TEST(test_failure());
    TEST(test_all_fail());
    return test_end();
}
