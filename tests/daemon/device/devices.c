// The engine with drivers that do nothing but keep account: who takes over when, what is closed and
// opened in which order, and that nothing is closed while somebody uses it.
#include "daemon/device/devices.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

enum { DEVICE_BYTES = 1000000, USABLE_BYTES = 950000, WAIT_MS = 20000 };

struct counts {
    _Atomic int opens, closes, resets, users;
    _Atomic int failures; // the next so many opens fail
    _Atomic int mistakes; // something happened that must not
};
static struct counts cuda, cpu;

// In NVDEC's place: the linker gives every call to these two.
static struct {
    _Atomic int opens, closes;
    bool is_missing;
} nvdec;

int __wrap_decode_device_open(struct decode_device **ret, int ordinal, int threads);
void __wrap_decode_device_close(struct decode_device *device);

int __wrap_decode_device_open(struct decode_device **ret, int ordinal, int threads)
{
    (void)ordinal, (void)threads;
    *ret = nvdec.is_missing ? NULL : (struct decode_device *)&nvdec;
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

static struct config config = {.cpu.workers = 2, .cuda = {.device = 3, .streams = 5, .band = {7}}};

static struct devices *start(enum backend_kind kind)
{
    struct devices *engine = NULL;
    forget();
    config.backend = kind;
    CHECK(devices_open_with(&engine, &config, &cuda_driver, &cpu_driver) == 0, "open");
    return engine;
}

static void end(struct devices *engine)
{
    devices_close(engine);
    CHECK(cuda.opens == cuda.closes && cpu.opens == cpu.closes, "%d of %d, %d of %d closed",
          cuda.closes, cuda.opens, cpu.closes, cpu.opens);
    CHECK(nvdec.opens == nvdec.closes, "%d of %d devices closed", nvdec.closes, nvdec.opens);
    CHECK(cuda.mistakes == 0 && cpu.mistakes == 0, "%d, %d mistakes", cuda.mistakes, cpu.mistakes);
}

static struct counts *counts_of(const struct device_lease *use)
{
    return (struct counts *)use->backend;
}

static void join(struct devices *engine, struct device_lease *use, bool cpu_only)
{
    int rc = devices_join(engine, use, cpu_only);
    if (rc == 0)
        counts_of(use)->users++;
    else
        cpu.mistakes++;
}

static void leave(struct devices *engine, struct device_lease *use)
{
    counts_of(use)->users--;
    devices_leave(engine, use);
}

static bool works(const struct devices *engine, const char *name)
{
    return strcmp(devices_backend_name(engine), name) == 0;
}

static bool comes_back(const struct devices *engine)
{
    for (int ms = 0; ms < WAIT_MS && !works(engine, "cuda"); ms += 10)
        usleep(10000);
    return works(engine, "cuda");
}

static bool comes_to(_Atomic int *count, int n)
{
    for (int ms = 0; ms < WAIT_MS && *count != n; ms += 10)
        usleep(10000);
    return *count == n;
}

static void test_choice(void)
{
    struct devices *engine = start(BACKEND_AUTO);
    CHECK(works(engine, "cuda") && cpu.opens == 0, "auto takes the device");
    end(engine);

    engine = start(BACKEND_CPU);
    CHECK(works(engine, "cpu") && cuda.opens == 0, "cpu leaves the device alone");
    end(engine);

    forget();
    cuda.failures = 1;
    config.backend = BACKEND_AUTO;
    CHECK(devices_open_with(&engine, &config, &cuda_driver, &cpu_driver) == 0, "auto without one");
    CHECK(works(engine, "cpu"), "auto takes the cpu then");
    end(engine);
    CHECK(devices_open_with(&engine, &config, NULL, &cpu_driver) == 0, "auto without a driver");
    end(engine);

    cuda.failures = 1;
    config.backend = BACKEND_CUDA;
    CHECK(devices_open_with(&engine, &config, &cuda_driver, &cpu_driver) == -ENODEV, "demanded");
    CHECK(devices_open_with(&engine, &config, NULL, &cpu_driver) == -ENODEV, "demanded, not built");
}

static void test_fallback(void)
{
    struct devices *engine = start(BACKEND_CUDA);
    struct device_lease a, b, c;
    struct device_busy took;
    join(engine, &a, false);
    join(engine, &b, false);
    CHECK(a.driver == &cuda_driver && !devices_stale(engine, &a), "the device");
    CHECK(devices_device_busy(engine, &took) && took.upload == 1 && took.kernel == 2 &&
              took.download == 3,
          "what the device's legs took");
    cuda.failures = 1;
    devices_failed(engine, &a, -EIO);
    devices_failed(engine, &b, -EIO);
    CHECK(devices_fallbacks(engine) == 1, "%d fallbacks", (int)devices_fallbacks(engine));
    CHECK(works(engine, "cpu") && devices_stale(engine, &a) && devices_stale(engine, &b), "stale");
    CHECK(!devices_device_busy(engine, &took), "the cpu has no such legs");
    leave(engine, &a);
    CHECK(!a.side && !devices_stale(engine, &a), "who has left has nothing that is stale");
    join(engine, &a, false);
    CHECK(a.driver == &cpu_driver && !devices_stale(engine, &a), "the cpu");
    join(engine, &c, true);
    CHECK(cuda.closes == 0 && cuda.resets == 0, "b still uses it");
    leave(engine, &b);
    CHECK(comes_back(engine), "%d opens", cuda.opens);
    CHECK(cuda.opens == 2 && cuda.closes == 1 && cuda.resets == 1, "once each, %d %d %d",
          cuda.opens, cuda.closes, cuda.resets);
    CHECK(devices_stale(engine, &a), "the device has taken over again");
    CHECK(!devices_stale(engine, &c), "but not from whom it has no room for");
    leave(engine, &a);
    join(engine, &a, false);
    CHECK(a.driver == &cuda_driver && cpu.closes == 0, "c still uses the cpu");
    leave(engine, &c);
    CHECK(comes_to(&cpu.closes, 1), "the cpu side is not closed when its last user has left");
    join(engine, &c, true);
    CHECK(c.driver == &cpu_driver && cpu.opens == 2, "and opened for the next");
    leave(engine, &a);
    leave(engine, &c);
    end(engine);
}

static void count_call(void *opaque)
{
    ++*(int *)opaque;
}

static void test_watch(void)
{
    struct devices *engine = start(BACKEND_AUTO);
    struct device_lease a, b, late;
    int calls[3] = {0};
    join(engine, &a, false);
    join(engine, &b, false);
    join(engine, &late, false);
    devices_watch(engine, &a, count_call, &calls[0]);
    devices_watch(engine, &b, count_call, &calls[1]);
    leave(engine, &a);
    devices_failed(engine, &b, -EIO);
    devices_failed(engine, &late, -EIO);
    devices_watch(engine, &late, count_call, &calls[2]);
    CHECK(calls[0] == 0, "who has left is not told");
    CHECK(calls[1] == 1 && calls[2] == 1, "each is told once, also later: %d %d", calls[1],
          calls[2]);
    leave(engine, &b);
    leave(engine, &late);
    end(engine);
}

static void test_cpu_fails(void)
{
    struct devices *engine = start(BACKEND_CPU);
    struct device_lease use;
    join(engine, &use, false);
    devices_failed(engine, &use, -EIO);
    CHECK(works(engine, "cpu") && devices_fallbacks(engine) == 0, "there is nothing behind it");
    CHECK(!devices_stale(engine, &use), "not stale");
    leave(engine, &use);
    end(engine);
}

// While the device does not come back, and also before the user of what failed has left.
static void test_close_in_between(void)
{
    struct devices *engine = start(BACKEND_AUTO);
    struct device_lease use;
    cuda.failures = 1000;
    join(engine, &use, false);
    devices_failed(engine, &use, -EIO);
    leave(engine, &use);
    CHECK(comes_to(&cuda.resets, 1), "no reset");
    end(engine);

    engine = start(BACKEND_AUTO);
    join(engine, &use, false);
    devices_failed(engine, &use, -EIO);
    CHECK(cuda.closes == 0, "it is in use");
    leave(engine, &use);
    end(engine);
}

// The first camera that demands NVDEC comes while the device is down, which brings NVDEC when it is
// back; or does without, if there is none.
static void test_nvdec_comes_late(bool is_missing)
{
    struct camera_config camera = {
        .name = "gate", .decode = DECODE_NVDEC, .picture = {64, 64}, .decode_threads = 1};
    const struct config next = {.cameras = &camera, .n_cameras = 1};
    struct devices *engine = start(BACKEND_AUTO);
    struct device_lease use;
    char why[256] = "";
    nvdec.is_missing = is_missing;
    join(engine, &use, false);
    devices_failed(engine, &use, -EIO);
    int rc = devices_admit(engine, &next, why, sizeof why);
    CHECK(rc == 0 && nvdec.opens == 0, "%d %s: %d devices", rc, why, nvdec.opens);
    leave(engine, &use);
    join(engine, &use, false);
    CHECK(!use.device, "a device of what has failed");
    CHECK(comes_back(engine), "%d opens", cuda.opens);
    leave(engine, &use);
    join(engine, &use, false);
    CHECK(!use.device == is_missing, "NVDEC did not come with the device");
    devices_failed(engine, &use, -EIO);
    leave(engine, &use);
    CHECK(comes_back(engine), "%d opens", cuda.opens);
    CHECK(nvdec.opens == (is_missing ? 0 : 2), "%d devices", nvdec.opens);
    end(engine);
}

static void test_nvdec_refused(void)
{
    struct camera_config camera = {
        .name = "gate", .decode = DECODE_NVDEC, .picture = {64, 64}, .decode_threads = 1};
    const struct config next = {.cameras = &camera, .n_cameras = 1};
    struct devices *engine = start(BACKEND_AUTO);
    char why[256] = "";
    nvdec.is_missing = true;
    int rc = devices_admit(engine, &next, why, sizeof why);
    CHECK(rc == -ENODEV && strstr(why, "camera gate"), "%d %s", rc, why);
    end(engine);
}

static void test_reserve(void)
{
    struct devices *engine = start(BACKEND_AUTO);
    struct device_lease on_device, on_cpu;
    size_t left = 0;
    join(engine, &on_device, false);
    join(engine, &on_cpu, true);
    CHECK(devices_reserve(engine, &on_device, 900000, &left) == 0, "fits");
    CHECK(devices_reserve(engine, &on_device, 50001, &left) == -ENOSPC && left == 50000, "%zu left",
          left);
    CHECK(devices_reserve(engine, &on_cpu, 50001, &left) == 0, "the cpu has no such limit");
    CHECK(devices_reserve(engine, &on_device, 50000, &left) == 0, "fits exactly");
    devices_unreserve(engine, &on_device, 900000);
    CHECK(devices_reserve(engine, &on_device, 900001, &left) == -ENOSPC && left == 900000,
          "%zu left", left);
    leave(engine, &on_device);
    leave(engine, &on_cpu);
    end(engine);

    config.cuda.memory.n = 1234;
    engine = start(BACKEND_AUTO);
    join(engine, &on_device, false);
    CHECK(devices_reserve(engine, &on_device, 1235, &left) == -ENOSPC && left == 1234, "%zu left",
          left);
    leave(engine, &on_device);
    end(engine);
    config.cuda.memory.n = 0;
}

// --- many at once

enum { THREADS = 4 };

struct crowd {
    struct devices *engine;
    _Atomic size_t reserved;
    _Atomic int full; // a user was told so
    _Atomic bool over;
};

static void *live(void *opaque)
{
    struct crowd *crowd = opaque;
    struct device_lease use;
    size_t left, mine = 0;
    join(crowd->engine, &use, false);
    while (!atomic_load(&crowd->over)) {
        if (devices_reserve(crowd->engine, &use, 100, &left) == 0)
            mine += 100;
        else
            atomic_store(&crowd->full, 1);
        if (!devices_stale(crowd->engine, &use))
            continue;
        devices_unreserve(crowd->engine, &use, mine);
        mine = 0;
        leave(crowd->engine, &use);
        join(crowd->engine, &use, false);
    }
    if (use.driver == &cuda_driver)
        atomic_fetch_add(&crowd->reserved, mine);
    leave(crowd->engine, &use);
    return NULL;
}

static void test_crowd(void)
{
    struct crowd crowd = {.engine = start(BACKEND_AUTO)};
    pthread_t thread[THREADS];
    struct device_lease use;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, live, &crowd);
    join(crowd.engine, &use, false);
    devices_failed(crowd.engine, &use, -EIO);
    leave(crowd.engine, &use);
    CHECK(comes_back(crowd.engine), "%d opens", cuda.opens);
    CHECK(comes_to(&cpu.closes, cpu.opens), "everybody has gone back");
    CHECK(comes_to(&cuda.users, THREADS), "%d users", cuda.users);
    atomic_store(&crowd.full, 0);
    CHECK(comes_to(&crowd.full, 1), "the device has no end");
    atomic_store(&crowd.over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK(crowd.reserved == USABLE_BYTES, "%zu bytes were given out", crowd.reserved);
    CHECK(devices_fallbacks(crowd.engine) == 1, "%d fallbacks",
          (int)devices_fallbacks(crowd.engine));
    end(crowd.engine);
}

int main(void)
{
    test_choice();
    test_fallback();
    test_watch();
    test_cpu_fails();
    test_close_in_between();
    test_nvdec_comes_late(false);
    test_nvdec_comes_late(true);
    test_nvdec_refused();
    test_reserve();
    test_crowd();
    return test_end("engine");
}
