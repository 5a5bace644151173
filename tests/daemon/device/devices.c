// Devices whose drivers only count calls: the takeovers and their times, the order of closing and
// opening, and no closing during use.
#include "daemon/device/devices.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "daemon/codec/nvdec.h"
#include "tests/test.h"

enum { DEVICE_BYTES = 1000000, USABLE_BYTES = 950000, WAIT_MS = 20000, HANG_MS = 3000 };

struct counts {
    _Atomic int opens, closes, resets, users;
    _Atomic int failures; // number of next opens that fail
    _Atomic int mistakes; // forbidden events
};
static struct counts cuda, cpu;

// The next open hangs until `hangs` is cleared, at most HANG_MS.
static _Atomic bool hangs, hanging;

static void hang(void)
{
    hanging = hangs;
    for (int ms = 0; ms < HANG_MS && hangs; ms += 10)
        usleep(10000);
    hanging = false;
}

// Replaces NVDEC: the linker sends all calls to these two functions.
static struct {
    _Atomic int opens, closes;
    bool is_missing;
    struct decode_device device;
} nvdec;

int __wrap_decode_device_open(struct decode_device **ret, int ordinal, int threads);
void __wrap_decode_device_close(struct decode_device *device);

int __wrap_decode_device_open(struct decode_device **ret, int ordinal, int threads)
{
    (void)ordinal, (void)threads;
    hang();
    *ret = nvdec.is_missing ? NULL : &nvdec.device;
    nvdec.opens += !nvdec.is_missing;
    return nvdec.is_missing ? -ENODEV : 0;
}

void __wrap_decode_device_close(struct decode_device *device)
{
    nvdec.closes += device != NULL;
}

static void forget(void)
{
    memset((void *)&cuda, 0, sizeof cuda);
    memset((void *)&cpu, 0, sizeof cpu);
    memset((void *)&nvdec, 0, sizeof nvdec);
}

static int open_counted(struct counts *counts, struct backend **ret)
{
    if (counts->opens - counts->closes != 0)
        counts->mistakes++;
    if (counts->failures > 0) {
        counts->failures--;
        return -ENODEV;
    }
    hang();
    counts->opens++;
    *ret = (struct backend *)counts;
    return 0;
}

static int open_cuda(struct backend **ret, const struct backend_options *options)
{
    if (options->device != 3 || options->streams != 5 || options->band_bytes != 7)
        cuda.mistakes++;
    return open_counted(&cuda, ret);
}

static int open_cpu(struct backend **ret, const struct backend_options *options)
{
    if (options->workers != 2)
        cpu.mistakes++;
    return open_counted(&cpu, ret);
}

static void close_any(struct backend *backend)
{
    struct counts *counts = (struct counts *)backend;
    if (counts->users != 0 || counts->closes == counts->opens)
        counts->mistakes++;
    counts->closes++;
}

static void reset(const struct backend_options *options)
{
    if (options->device != 3 || cuda.closes != cuda.opens)
        cuda.mistakes++;
    cuda.resets++;
}

static const char *describe(struct backend *backend)
{
    (void)backend;
    return "made up";
}

static size_t device_bytes(struct backend *backend)
{
    (void)backend;
    return DEVICE_BYTES;
}

static struct device_busy busy(struct backend *backend)
{
    if ((struct counts *)backend != &cuda || cuda.opens == cuda.closes)
        cuda.mistakes++;
    return (struct device_busy){1, 2, 3};
}

static const struct backend_driver cuda_driver = {
    .name = "cuda",
    .open = open_cuda,
    .close = close_any,
    .describe = describe,
    .device_bytes = device_bytes,
    .busy = busy,
    .reset = reset,
};
static const struct backend_driver cpu_driver = {
    .name = "cpu",
    .open = open_cpu,
    .close = close_any,
    .describe = describe,
};

static struct config config = {.cpu.workers = 2,
                               .cuda = {.devices = {1, {3}}, .streams = 5, .band = {7}}};

static struct devices *start(enum backend_kind kind)
{
    struct devices *devices = NULL;
    forget();
    config.backend = kind;
    CHECK(devices_open_with(&devices, &config, &cuda_driver, &cpu_driver) == 0, "open");
    return devices;
}

static void end(struct devices *devices)
{
    devices_close(devices);
    CHECK(cuda.opens == cuda.closes && cpu.opens == cpu.closes, "%d of %d, %d of %d closed",
          cuda.closes, cuda.opens, cpu.closes, cpu.opens);
    CHECK(nvdec.opens == nvdec.closes, "%d of %d devices closed", nvdec.closes, nvdec.opens);
    CHECK(cuda.mistakes == 0 && cpu.mistakes == 0, "%d, %d mistakes", cuda.mistakes, cpu.mistakes);
}

static struct counts *counts_of(const struct device_lease *lease)
{
    return (struct counts *)lease->backend;
}

static void acquire_again(struct devices *devices, struct device_lease *lease)
{
    int rc = device_acquire(devices, NULL, lease);
    if (rc == 0)
        counts_of(lease)->users++;
    else
        cpu.mistakes++;
}

static void acquire(struct devices *devices, struct device_lease *lease)
{
    *lease = (struct device_lease){0};
    acquire_again(devices, lease);
}

static void release(struct device_lease *lease)
{
    counts_of(lease)->users--;
    device_release(lease);
}

// Acquires the CPU, for a camera that the GPU had no room for.
static void acquire_cpu(struct devices *devices, struct device_lease *lease)
{
    *lease = (struct device_lease){.place.avoided = 1};
    acquire_again(devices, lease);
}

static bool works(struct devices *devices, const char *name)
{
    return strcmp(devices_backend_name(devices), name) == 0;
}

static bool comes_back(struct devices *devices)
{
    for (int ms = 0; ms < WAIT_MS && !works(devices, "cuda"); ms += 10)
        usleep(10000);
    return works(devices, "cuda");
}

static bool comes_to(_Atomic int *count, int n)
{
    for (int ms = 0; ms < WAIT_MS && *count != n; ms += 10)
        usleep(10000);
    return *count == n;
}

static void test_choice(void)
{
    struct devices *devices = start(BACKEND_AUTO);
    CHECK(works(devices, "cuda") && cpu.opens == 0, "auto takes the device");
    end(devices);

    devices = start(BACKEND_CPU);
    CHECK(works(devices, "cpu") && cuda.opens == 0, "cpu leaves the device alone");
    end(devices);

    forget();
    cuda.failures = 1;
    config.backend = BACKEND_AUTO;
    CHECK(devices_open_with(&devices, &config, &cuda_driver, &cpu_driver) == 0, "auto without one");
    CHECK(works(devices, "cpu"), "auto takes the cpu then");
    end(devices);
    CHECK(devices_open_with(&devices, &config, NULL, &cpu_driver) == 0, "auto without a driver");
    end(devices);

    cuda.failures = 1;
    config.backend = BACKEND_CUDA;
    CHECK(devices_open_with(&devices, &config, &cuda_driver, &cpu_driver) == -ENODEV, "demanded");
    CHECK(devices_open_with(&devices, &config, NULL, &cpu_driver) == -ENODEV,
          "demanded, not built");
}

static void test_fallback(void)
{
    struct devices *devices = start(BACKEND_CUDA);
    struct device_lease a, b, c;
    struct device_status status[DEVICES_MAX];
    acquire(devices, &a);
    acquire(devices, &b);
    CHECK(a.driver == &cuda_driver && !device_is_stale(&a), "the device");
    CHECK(devices_status(devices, status) == 2 && status[0].number == 3 && status[0].works &&
              status[0].cameras == 2 && status[1].number == -1 && !status[1].works,
          "a GPU that works, and the CPU, which is not open");
    CHECK(status[0].has_busy && status[0].busy.upload == 1 && status[0].busy.kernel == 2 &&
              status[0].busy.download == 3,
          "what the device's legs took");
    cuda.failures = 1;
    device_failed(&a, -EIO);
    device_failed(&b, -EIO);
    CHECK(devices_fallbacks(devices) == 1, "%d fallbacks", (int)devices_fallbacks(devices));
    CHECK(works(devices, "cpu") && device_is_stale(&a) && device_is_stale(&b), "stale");
    devices_status(devices, status);
    CHECK(!status[0].works && !status[0].has_busy && !status[1].has_busy, "nobody has such legs");
    release(&a);
    CHECK(!a.device && !device_is_stale(&a), "who has left has nothing that is stale");
    acquire(devices, &a);
    CHECK(a.driver == &cpu_driver && !device_is_stale(&a), "the cpu");
    acquire_cpu(devices, &c);
    CHECK(cuda.closes == 0 && cuda.resets == 0, "b still uses it");
    release(&b);
    CHECK(comes_back(devices), "%d opens", cuda.opens);
    CHECK(cuda.opens == 2 && cuda.closes == 1 && cuda.resets == 1, "once each, %d %d %d",
          cuda.opens, cuda.closes, cuda.resets);
    CHECK(device_is_stale(&a), "the device has taken over again");
    CHECK(!device_is_stale(&c), "but not from whom it has no room for");
    release(&a);
    acquire(devices, &a);
    CHECK(a.driver == &cuda_driver && cpu.closes == 0, "c still uses the cpu");
    release(&c);
    CHECK(comes_to(&cpu.closes, 1), "the cpu is not closed when its last user has left");
    acquire_cpu(devices, &c);
    CHECK(c.driver == &cpu_driver && cpu.opens == 2, "and opened for the next");
    release(&a);
    release(&c);
    end(devices);
}

static void count_call(void *opaque)
{
    ++*(int *)opaque;
}

static void test_watch(void)
{
    struct devices *devices = start(BACKEND_AUTO);
    struct device_lease a, b, late;
    int calls[3] = {0};
    acquire(devices, &a);
    acquire(devices, &b);
    acquire(devices, &late);
    device_on_failure(&a, count_call, &calls[0]);
    device_on_failure(&b, count_call, &calls[1]);
    release(&a);
    device_failed(&b, -EIO);
    device_failed(&late, -EIO);
    device_on_failure(&late, count_call, &calls[2]);
    CHECK(calls[0] == 0, "who has left is not told");
    CHECK(calls[1] == 1 && calls[2] == 1, "each is told once, also later: %d %d", calls[1],
          calls[2]);
    release(&b);
    release(&late);
    end(devices);
}

static void test_cpu_fails(void)
{
    struct devices *devices = start(BACKEND_CPU);
    struct device_lease lease;
    acquire(devices, &lease);
    device_failed(&lease, -EIO);
    CHECK(works(devices, "cpu") && devices_fallbacks(devices) == 0, "there is nothing behind it");
    CHECK(!device_is_stale(&lease), "not stale");
    release(&lease);
    end(devices);
}

// Closes while the device does not come back, and before the failed device's user has left.
static void test_close_in_between(void)
{
    struct devices *devices = start(BACKEND_AUTO);
    struct device_lease lease;
    cuda.failures = 1000;
    acquire(devices, &lease);
    device_failed(&lease, -EIO);
    release(&lease);
    CHECK(comes_to(&cuda.resets, 1), "no reset");
    end(devices);

    devices = start(BACKEND_AUTO);
    acquire(devices, &lease);
    device_failed(&lease, -EIO);
    CHECK(cuda.closes == 0, "it is in use");
    release(&lease);
    end(devices);
}

// The first camera that demands NVDEC comes while the device is down: NVDEC opens when the device
// is back, or, if there is none, the device works without.
static void test_nvdec_comes_late(bool is_missing)
{
    struct camera_config camera = {
        .name = "gate", .decode.by = DECODE_NVDEC, .picture = {64, 64}, .threads = 1};
    const struct config next = {.cameras = &camera, .n_cameras = 1};
    struct devices *devices = start(BACKEND_AUTO);
    struct device_lease lease;
    char why[256] = "";
    nvdec.is_missing = is_missing;
    acquire(devices, &lease);
    device_failed(&lease, -EIO);
    int rc = devices_provide(devices, &next, why, sizeof why);
    CHECK(rc == 0 && nvdec.opens == 0, "%d %s: %d devices", rc, why, nvdec.opens);
    release(&lease);
    acquire(devices, &lease);
    CHECK(!lease.nvdec, "a device of what has failed");
    CHECK(comes_back(devices), "%d opens", cuda.opens);
    release(&lease);
    acquire(devices, &lease);
    CHECK(!lease.nvdec == is_missing, "NVDEC did not come with the device");
    device_failed(&lease, -EIO);
    release(&lease);
    CHECK(comes_back(devices), "%d opens", cuda.opens);
    CHECK(nvdec.opens == (is_missing ? 0 : 2), "%d devices", nvdec.opens);
    end(devices);
}

// A decoder that a camera left on NVDEC is closed while the device works, also if NVDEC decodes for
// the CPU.
static void test_nvdec_abandoned(enum backend_kind kind)
{
    struct camera_config camera = {
        .name = "gate", .decode.by = DECODE_NVDEC, .picture = {64, 64}, .threads = 1};
    const struct config next = {.cameras = &camera, .n_cameras = 1};
    struct devices *devices = start(kind);
    struct device_lease lease;
    char why[256] = "";
    CHECK(devices_provide(devices, &next, why, sizeof why) == 0, "%s", why);
    acquire(devices, &lease);
    CHECK(lease.nvdec == &nvdec.device, "no NVDEC");
    for (int i = 0; i < 2; i++)
        nvdec_abandon(lease.nvdec, avcodec_alloc_context3(NULL));
    release(&lease);
    for (int ms = 0; ms < WAIT_MS && atomic_load(&nvdec.device.abandoned); ms += 10)
        usleep(10000);
    CHECK(!atomic_load(&nvdec.device.abandoned) && nvdec.closes == 0, "they stay");
    end(devices);
}

static void test_nvdec_refused(void)
{
    struct camera_config camera = {
        .name = "gate", .decode.by = DECODE_NVDEC, .picture = {64, 64}, .threads = 1};
    const struct config next = {.cameras = &camera, .n_cameras = 1};
    struct devices *devices = start(BACKEND_AUTO);
    char why[256] = "";
    nvdec.is_missing = true;
    int rc = devices_provide(devices, &next, why, sizeof why);
    CHECK(rc == -ENODEV && strstr(why, "camera gate"), "%d %s", rc, why);
    end(devices);
}

static void test_reserve(void)
{
    struct devices *devices = start(BACKEND_AUTO);
    struct device_lease on_device, on_cpu;
    size_t left = 0;
    acquire(devices, &on_device);
    acquire_cpu(devices, &on_cpu);
    CHECK(device_reserve(&on_device, 900000, &left) == 0, "fits");
    CHECK(device_reserve(&on_device, 50001, &left) == -ENOSPC && left == 50000, "%zu left", left);
    CHECK(device_reserve(&on_cpu, 50001, &left) == 0, "the cpu has no such limit");
    CHECK(device_reserve(&on_device, 50000, &left) == 0, "fits exactly");
    device_unreserve(&on_device, 900000);
    CHECK(device_reserve(&on_device, 900001, &left) == -ENOSPC && left == 900000, "%zu left", left);
    CHECK(device_reserve_spare(&on_device, 840626, &left) == -ENOSPC && left == 840625,
          "%zu left, of a limit of 950000", left);
    CHECK(device_reserve_spare(&on_device, 840625, &left) == 0, "all but a sixteenth");
    CHECK(device_reserve(&on_device, 59375, &left) == 0, "which cameras may have");
    CHECK(device_reserve_spare(&on_device, 1, &left) == -ENOSPC && left == 0, "%zu left", left);
    CHECK(device_reserve_spare(&on_cpu, 50001, &left) == 0, "the cpu has no such limit");
    release(&on_device);
    release(&on_cpu);
    end(devices);

    config.cuda.memory.n = 1234;
    devices = start(BACKEND_AUTO);
    acquire(devices, &on_device);
    CHECK(device_reserve(&on_device, 1235, &left) == -ENOSPC && left == 1234, "%zu left", left);
    release(&on_device);
    end(devices);
    config.cuda.memory.n = 0;
}

// --- a driver that hangs

static void *use_cpu(void *opaque)
{
    struct device_lease lease;
    acquire_cpu(opaque, &lease);
    release(&lease);
    return NULL;
}

static void *admit_nvdec(void *opaque)
{
    struct camera_config camera = {
        .name = "gate", .decode.by = DECODE_NVDEC, .picture = {64, 64}, .threads = 1};
    const struct config next = {.cameras = &camera, .n_cameras = 1};
    char why[256] = "";
    CHECK(devices_provide(opaque, &next, why, sizeof why) != -ENODEV, "%s", why);
    return NULL;
}

// Status and leases on another device do not wait for a device that is being opened.
static void test_open_hangs(void *(*open)(void *), bool acquires)
{
    struct devices *devices = start(BACKEND_AUTO);
    struct devices_memory memory;
    struct device_lease before, during;
    struct device_status status[DEVICES_MAX];
    pthread_t thread;
    acquire(devices, &before);
    hangs = true;
    pthread_create(&thread, NULL, open, devices);
    for (int ms = 0; ms < WAIT_MS && !hanging; ms += 10)
        usleep(10000);
    CHECK(hanging, "it opens");
    devices_status(devices, status);
    CHECK(strcmp(status->description, "made up") == 0 && works(devices, "cuda"), "\"%s\"",
          status->description);
    CHECK(status->has_busy && !status->has_nvdec, "NVDEC is not open yet");
    devices_memory(devices, &config, &memory);
    if (acquires) {
        acquire(devices, &during);
        release(&during);
    }
    release(&before);
    CHECK(hanging, "nobody waited");
    hangs = false;
    pthread_join(thread, NULL);
    end(devices);
}

// --- many at once

enum { THREADS = 4 };

struct crowd {
    struct devices *devices;
    _Atomic size_t reserved;
    _Atomic int full; // times that a user had no room
    _Atomic bool over;
};

static void *live(void *opaque)
{
    struct crowd *crowd = opaque;
    struct device_lease lease;
    size_t left, mine = 0;
    acquire(crowd->devices, &lease);
    while (!atomic_load(&crowd->over)) {
        if (device_reserve(&lease, 100, &left) == 0)
            mine += 100;
        else
            atomic_store(&crowd->full, 1);
        if (!device_is_stale(&lease))
            continue;
        device_unreserve(&lease, mine);
        mine = 0;
        release(&lease);
        acquire(crowd->devices, &lease);
    }
    if (lease.driver == &cuda_driver)
        atomic_fetch_add(&crowd->reserved, mine);
    release(&lease);
    return NULL;
}

static void test_crowd(void)
{
    struct crowd crowd = {.devices = start(BACKEND_AUTO)};
    pthread_t thread[THREADS];
    struct device_lease lease;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, live, &crowd);
    acquire(crowd.devices, &lease);
    device_failed(&lease, -EIO);
    release(&lease);
    CHECK(comes_back(crowd.devices), "%d opens", cuda.opens);
    CHECK(comes_to(&cpu.closes, cpu.opens), "everybody has gone back");
    CHECK(comes_to(&cuda.users, THREADS), "%d users", cuda.users);
    atomic_store(&crowd.full, 0);
    CHECK(comes_to(&crowd.full, 1), "the device has no end");
    atomic_store(&crowd.over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK(crowd.reserved == USABLE_BYTES, "%zu bytes were given out", crowd.reserved);
    CHECK(devices_fallbacks(crowd.devices) == 1, "%d fallbacks",
          (int)devices_fallbacks(crowd.devices));
    end(crowd.devices);
}

int main(void)
{
    TEST(test_choice());
    TEST(test_fallback());
    TEST(test_watch());
    TEST(test_cpu_fails());
    TEST(test_close_in_between());
    TEST(test_nvdec_comes_late(false));
    TEST(test_nvdec_comes_late(true));
    TEST(test_nvdec_abandoned(BACKEND_AUTO));
    TEST(test_nvdec_abandoned(BACKEND_CPU));
    TEST(test_nvdec_refused());
    TEST(test_reserve());
    TEST(test_open_hangs(use_cpu, true));
    TEST(test_open_hangs(admit_nvdec, false));
    TEST(test_crowd());
    return test_end();
}
