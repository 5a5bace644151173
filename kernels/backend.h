// A backend runs ops on frames: asynchronously, band by band, with several frames in flight.
// A plan is one camera at one geometry: its ops and the buffers of `depth` jobs.
#ifndef FRAMED_KERNELS_BACKEND_H
#define FRAMED_KERNELS_BACKEND_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PLAN_OPS_MAX = 16,
    CUDA_STREAMS_MAX = 32,
};

struct backend_options {
    int workers;       // cpu: threads; 0 = one per online processor
    int device;        // cuda: ordinal
    int streams;       // cuda: at most CUDA_STREAMS_MAX; 0 = chosen by the backend
    size_t band_bytes; // source + result bytes of a band; 0 = chosen by the backend
};

struct backend; // each backend's own
struct plan;    // each backend's own

// One frame's work. The submitter owns the struct and keeps it, `src` and the results alive until
// `done`. A result whose pointer is NULL is left out.
struct job {
    struct image src; // shaped like the plan's source; host or pinned, or cuda if takes_cuda
    // Host memory of op.dst_bytes each, from alloc() where speed matters.
    void *result[PLAN_OPS_MAX];
    // Called once for every job whose submit returned 0, on a thread of the backend, never from
    // within submit. status: 0, or negative errno (-EIO: the device failed). It must not block.
    void (*done)(struct job *, int status);
    void *opaque;     // the submitter's
    void *lane;       // the backend's while the job is in flight
    struct job *next; // the backend's
};

struct backend_driver {
    const char *name; // "cpu", "cuda"
    bool takes_cuda;  // sources may lie in MEMORY_CUDA of the device's primary context

    // -ENODEV: no such device or driver on this box.
    int (*open)(struct backend **ret, const struct backend_options *);
    void (*close)(struct backend *); // every plan must be closed before; accepts NULL
    // What a log line says of it ("4 workers", "NVIDIA H200, 8 streams"); lives as long as the
    // backend.
    const char *(*describe)(struct backend *);

    // Host memory that this backend reads and writes fastest (page-locked for cuda), aligned to 64.
    // NULL where there is none. Any thread.
    void *(*alloc)(struct backend *, size_t bytes);
    void (*free)(struct backend *, void *); // accepts NULL

    // `ops` (n of them, made for sources like `src`) must outlive the plan. `depth`: the most jobs
    // that will be in flight at once. Blocks; not for the loop thread.
    int (*plan_open)(struct backend *, struct plan **ret, const struct image *src,
                     const struct op *const ops[], int n, int depth);
    void (*plan_close)(struct plan *); // waits for the plan's jobs to be done; accepts NULL

    // Starts a job; never waits for the device. -EBUSY where `depth` jobs are in flight already,
    // -EIO where the device has failed. On error done is not called.
    int (*submit)(struct plan *, struct job *);
};

extern const struct backend_driver cpu_backend;
extern const struct backend_driver cuda_backend; // in builds with FRAMED_CUDA only

#ifdef __cplusplus
}
#endif
#endif
