// GPUs that fail on request, for a framed in which this replaces cuda_backend. FRAMED_FAULTS in the
// environment lists the failing calls by GPU and number from 1 ("job:200,open:1" for GPU 0,
// "job@1:200" for GPU 1):
//
//     plan    opening a plan fails: the device has failed
//     submit  a job is refused: the device has failed
//     job     a job is accepted and fails: the device has failed
//     refuse  a job is accepted and fails alone: the device goes on
//     trap    like job, by a real failure of the device; needs a GPU
//     open    reopening the device fails: it is gone
//     close   closing the device hangs for ever
//
// A failed device stays so until it is reopened. Without a GPU, the CPU backend acts as one, or as
// FRAMED_GPUS of them.
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/backend.h"

#define UNMAPPED ((void *)4096)

enum { DEVICES = 4 };

struct device {
    _Atomic bool dead;
    _Atomic int opens, plans, jobs, closes;
    struct job *_Atomic refused;
    uint8_t uuid[16];
};

struct backend {
    struct backend *real;
    struct device *device;
};

struct plan {
    struct plan *real;
    struct device *device;
};

static const struct backend_driver *real;
static struct device devices[DEVICES];
static void (*_Atomic job_done)(struct job *, int); // the same for every job of a framed

static bool is_due(const char *fault, const struct device *device, int number)
{
    const char *list = getenv("FRAMED_FAULTS");
    char wanted[48], listed[256];
    snprintf(listed, sizeof listed, ",%s,", list ? list : "");
    snprintf(wanted, sizeof wanted, ",%s@%d:%d,", fault, (int)(device - devices), number);
    const bool due = strstr(listed, wanted) != NULL;
    snprintf(wanted, sizeof wanted, ",%s:%d,", fault, number);
    return due || (device == devices && strstr(listed, wanted));
}

static int count(void)
{
    const char *posing = getenv("FRAMED_GPUS");
    int n = 0;
#ifdef FRAMED_CUDA
    n = cuda_backend.count();
#endif
    if (n == 0)
        n = posing ? atoi(posing) : 1;
    return n < DEVICES ? n : DEVICES;
}

static int open_real(struct backend **ret, const struct backend_options *options)
{
    int rc = -ENODEV;
#ifdef FRAMED_CUDA
    real = &cuda_backend;
    rc = real->open(ret, options);
#endif
    if (rc == -ENODEV) {
        real = &cpu_backend;
        rc = real->open(ret, options);
    }
    return rc;
}

static int open_device(struct backend **ret, const struct backend_options *options)
{
    if (options->device >= count())
        return -ENODEV;
    struct device *device = &devices[options->device];
    if (is_due("open", device, atomic_fetch_add(&device->opens, 1)))
        return -ENODEV;
    struct backend *backend = calloc(1, sizeof *backend);
    if (!backend)
        return -ENOMEM;
    backend->device = device;
    const int rc = open_real(&backend->real, options);
    if (rc < 0) {
        free(backend);
        return rc;
    }
    atomic_store(&device->dead, false);
    memset(device->uuid, 0x10 + options->device, sizeof device->uuid);
    if (real->device_uuid)
        memcpy(device->uuid, real->device_uuid(backend->real), sizeof device->uuid);
    *ret = backend;
    return 0;
}

static void close_device(struct backend *backend)
{
    struct device *device = backend->device;
    while (is_due("close", device, atomic_load(&device->closes) + 1))
        pause();
    atomic_fetch_add(&device->closes, 1);
    real->close(backend->real);
    free(backend);
}

static const char *describe(struct backend *backend)
{
    return real->describe(backend->real);
}

static size_t device_bytes(struct backend *backend)
{
    return real->device_bytes ? real->device_bytes(backend->real) : (size_t)1 << 40;
}

static const uint8_t *device_uuid(struct backend *backend)
{
    return backend->device->uuid;
}

static struct device_busy busy(struct backend *backend)
{
    return real->busy ? real->busy(backend->real) : (struct device_busy){0};
}

static int pin(struct backend *backend, void *memory, size_t bytes)
{
    return real->pin(backend->real, memory, bytes);
}

static void unpin(struct backend *backend, void *memory)
{
    real->unpin(backend->real, memory);
}

static int export_open(struct backend *backend, struct device_export *ret, enum export_kind kind,
                       size_t bytes)
{
    return real->export_open ? real->export_open(backend->real, ret, kind, bytes) : -ENOTSUP;
}

static void export_close(struct backend *backend, struct device_export *memory)
{
    real->export_close(backend->real, memory);
}

static int export_write(struct backend *backend, void *to, const void *from, size_t bytes)
{
    return real->export_write(backend->real, to, from, bytes);
}

static int picture_copy(struct backend *backend, const struct image *to, const struct image *from)
{
    return real->picture_copy(backend->real, to, from);
}

static struct memory_need plan_need(const struct image *src, const struct op *const ops[], int n,
                                    int depth)
{
    return real->plan_need(src, ops, n, depth);
}

static int plan_open(struct backend *backend, struct plan **ret, const struct image *src,
                     const struct op *const ops[], int n, int depth)
{
    struct device *device = backend->device;
    if (is_due("plan", device, atomic_fetch_add(&device->plans, 1) + 1))
        atomic_store(&device->dead, true);
    if (atomic_load(&device->dead))
        return -EIO;
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return -ENOMEM;
    plan->device = device;
    const int rc = real->plan_open(backend->real, &plan->real, src, ops, n, depth);
    if (rc < 0)
        free(plan);
    else
        *ret = plan;
    return rc;
}

static void plan_close(struct plan *plan)
{
    if (!plan)
        return;
    real->plan_close(plan->real);
    free(plan);
}

// A finished job does not name its device, so each device has its own `done`.
static void done_on(struct device *device, struct job *job, int status)
{
    struct job *refused = job;
    if (atomic_compare_exchange_strong(&device->refused, &refused, NULL))
        status = -EREMOTEIO;
    atomic_load (&job_done)(job, atomic_load(&device->dead) ? -EIO : status);
}

#define DONE(number)                                                                               \
    static void done_##number(struct job *job, int status)                                         \
    {                                                                                              \
        done_on(&devices[number], job, status);                                                    \
    }
DONE(0)
DONE(1)
DONE(2)
DONE(3)
static void (*const dones[DEVICES])(struct job *, int) = {done_0, done_1, done_2, done_3};

static void spoil(struct job *job)
{
    for (int i = 0; i < job->n; i++) {
        if (!job->results[i].data)
            continue;
        job->results[i].data = UNMAPPED;
        job->results[i].memory = MEMORY_CUDA;
    }
}

static int submit(struct plan *plan, struct job *job)
{
    struct device *device = plan->device;
    const int number = atomic_fetch_add(&device->jobs, 1) + 1;
    if (is_due("submit", device, number))
        atomic_store(&device->dead, true);
    if (atomic_load(&device->dead))
        return -EIO;
    if (is_due("job", device, number))
        atomic_store(&device->dead, true);
    if (is_due("refuse", device, number))
        atomic_store(&device->refused, job);
    if (is_due("trap", device, number))
        spoil(job);
    atomic_store(&job_done, job->done);
    job->done = dones[device - devices];
    return real->submit(plan->real, job);
}

static void reset(const struct backend_options *options)
{
    if (real->reset)
        real->reset(options);
}

extern const struct backend_driver faulty_backend;
const struct backend_driver faulty_backend = {
    .name = "cuda",
#ifdef FRAMED_CUDA
    .takes_cuda = true,
#endif
    .count = count,
    .open = open_device,
    .close = close_device,
    .describe = describe,
    .device_bytes = device_bytes,
    .device_uuid = device_uuid,
    .busy = busy,
    .pin = pin,
    .unpin = unpin,
    .export_open = export_open,
    .export_close = export_close,
    .export_write = export_write,
    .picture_copy = picture_copy,
    .plan_need = plan_need,
    .plan_open = plan_open,
    .plan_close = plan_close,
    .submit = submit,
    .reset = reset,
};
