// A GPU that fails to order, for a framed in which this takes cuda_backend's place. The
// environment's FRAMED_FAULTS lists which call is to fail, by its number from 1 ("job:200,open:1"):
//
//     plan    opening a plan: the device has failed
//     submit  a job is refused: the device has failed
//     job     a job is taken and does not succeed: the device has failed
//     trap    the same, by a device that fails in earnest; needs one
//     open    opening the device anew: it is not there
//
// A device that has failed stays so until it is opened anew. Where there is none, the cpu backend
// poses as one.
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"

#define UNMAPPED ((void *)4096)

static const struct backend_driver *real;
static _Atomic bool dead;
static _Atomic int opens, plans, jobs;
static void (*_Atomic job_done)(struct job *, int); // the same for every job of a framed

static bool is_due(const char *fault, int number)
{
    const char *list = getenv("FRAMED_FAULTS");
    char wanted[32], listed[256];
    snprintf(wanted, sizeof wanted, ",%s:%d,", fault, number);
    snprintf(listed, sizeof listed, ",%s,", list ? list : "");
    return strstr(listed, wanted) != NULL;
}

static int open_device(struct backend **ret, const struct backend_options *options)
{
    if (is_due("open", atomic_fetch_add(&opens, 1)))
        return -ENODEV;
    int rc = -ENODEV;
#ifdef FRAMED_CUDA
    real = &cuda_backend;
    rc = real->open(ret, options);
#endif
    if (rc == -ENODEV) {
        real = &cpu_backend;
        rc = real->open(ret, options);
    }
    atomic_store(&dead, false);
    return rc;
}

static void close_device(struct backend *backend)
{
    real->close(backend);
}

static const char *describe(struct backend *backend)
{
    return real->describe(backend);
}

static size_t device_bytes(struct backend *backend)
{
    return real->device_bytes ? real->device_bytes(backend) : (size_t)1 << 40;
}

static struct device_busy busy(struct backend *backend)
{
    return real->busy ? real->busy(backend) : (struct device_busy){0};
}

static int pin(struct backend *backend, void *memory, size_t bytes)
{
    return real->pin(backend, memory, bytes);
}

static void unpin(struct backend *backend, void *memory)
{
    real->unpin(backend, memory);
}

static int export_open(struct backend *backend, struct device_export *ret, size_t bytes)
{
    return real->export_open ? real->export_open(backend, ret, bytes) : -ENOTSUP;
}

static void export_close(struct backend *backend, struct device_export *memory)
{
    real->export_close(backend, memory);
}

static struct memory_need plan_need(const struct image *src, const struct op *const ops[], int n,
                                    int depth)
{
    return real->plan_need(src, ops, n, depth);
}

static int plan_open(struct backend *backend, struct plan **ret, const struct image *src,
                     const struct op *const ops[], int n, int depth)
{
    if (is_due("plan", atomic_fetch_add(&plans, 1) + 1))
        atomic_store(&dead, true);
    return atomic_load(&dead) ? -EIO : real->plan_open(backend, ret, src, ops, n, depth);
}

static void plan_close(struct plan *plan)
{
    real->plan_close(plan);
}

static void done(struct job *job, int status)
{
    atomic_load (&job_done)(job, atomic_load(&dead) ? -EIO : status);
}

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
    int number = atomic_fetch_add(&jobs, 1) + 1;
    if (is_due("submit", number))
        atomic_store(&dead, true);
    if (atomic_load(&dead))
        return -EIO;
    if (is_due("job", number))
        atomic_store(&dead, true);
    if (is_due("trap", number))
        spoil(job);
    atomic_store(&job_done, job->done);
    job->done = done;
    return real->submit(plan, job);
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
    .open = open_device,
    .close = close_device,
    .describe = describe,
    .device_bytes = device_bytes,
    .busy = busy,
    .pin = pin,
    .unpin = unpin,
    .export_open = export_open,
    .export_close = export_close,
    .plan_need = plan_need,
    .plan_open = plan_open,
    .plan_close = plan_close,
    .submit = submit,
    .reset = reset,
};
