// Private to the CUDA backend: cuda.cu (the backend and its completion thread), cuda_plan.cu
// (buffers and the schedule of a plan), cuda_job.cu (one job onto the streams) and the kernels'
// launches.
#ifndef FRAMED_KERNELS_CUDA_H
#define FRAMED_KERNELS_CUDA_H

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "kernels/backend.h"

enum { CUDA_BANDS_MAX = 64 };

// Returns the error of a CUDA call from a function that has nothing to undo.
#define CUDA_TRY(call)                                                                             \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess)                                                                 \
            return error_;                                                                         \
    } while (0)

struct backend {
    int device, streams;
    size_t band_bytes;
    char description[300];
    // Uploads have a stream of their own: the link takes them one after the other anyway, and in
    // one queue the first band is there first and never waits behind another band's download.
    cudaStream_t upload, stream[CUDA_STREAMS_MAX];
    // Blocking copies: a new plan's tables, and results that go to memory that is not pinned.
    cudaStream_t aside;

    pthread_t completer;
    bool has_completer;
    pthread_mutex_t lock;    // what follows, and each plan's `idle` and `pending`
    pthread_cond_t changed;  // any of it
    struct job *head, *tail; // in flight, in order of submission
    unsigned turn;           // the stream that the next job starts with
    bool closing, failed;
};

// One band of one result; it may run once source band `needs` is on the device (-1: reads nothing).
struct step {
    int op, needs;
    struct band out;
};

// The buffers of one job in flight.
struct lane {
    struct plan *plan;
    struct lane *next; // plan::idle
    // Pinned and device memory, both tight; NULL planes where sources are on the device already.
    struct image staging, source;
    uint8_t *result[PLAN_OPS_MAX];          // device memory
    cudaEvent_t ready[CUDA_BANDS_MAX];      // source bands up to this one are on the device
    cudaEvent_t finished[CUDA_STREAMS_MAX]; // the job's last work on a stream
    uint32_t used;                          // bit i: the job put work on stream i
    uint32_t aside;                         // bit i: result i is not pinned, copied aside
    cudaError_t error;                      // putting the job onto the streams broke off with this
};

struct plan {
    struct backend *backend;
    struct image src;
    int ops, bands, steps, lanes;
    const struct op *op[PLAN_OPS_MAX];
    struct warp *warp[PLAN_OPS_MAX];  // device copies of the warps, tables included
    struct band band[CUDA_BANDS_MAX]; // source rows in order of upload
    struct step *step;                // sorted by needs
    struct lane *lane, *idle;
    int pending; // jobs whose `done` has not returned
};

int cuda_errno(cudaError_t); // 0, -ENOMEM, -ENODEV or -EIO

// Copies and waits, on the backend's `aside` stream.
cudaError_t cuda_copy(struct backend *, void *dst, const void *src, size_t bytes);

// plan_finish frees what plan_init made; no job may be in flight. init undoes itself on failure.
int cuda_plan_init(struct plan *, struct backend *, const struct image *src,
                   const struct op *const ops[], int n, int depth);
void cuda_plan_finish(struct plan *);

// Puts the whole job onto the streams, from stream `turn` on; never waits for the device.
cudaError_t cuda_job_start(struct lane *, struct job *, unsigned turn);
// Waits until no work of the job is left, also after an error.
cudaError_t cuda_job_wait(struct lane *, struct job *);

// The kernel for an op, to load it ahead of its first launch.
const void *warp_cuda_kernel(const struct warp *);
const void *yuv_cuda_kernel(const struct yuv *);

// Launches; `device` is the copy of `warp` in device memory.
cudaError_t warp_cuda(const struct image *dst, const struct image *src, const struct warp *warp,
                      const struct warp *device, struct band, cudaStream_t);
cudaError_t yuv_cuda(const struct image *dst, const struct image *src, const struct yuv *,
                     struct band, cudaStream_t);

#endif
