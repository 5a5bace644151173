// Private to the CUDA backend: backend.cu (the backend, its completion thread and the device's copy
// rates), busy.cu (the device's busy time), memory.cu (memory shared with the caller and other
// processes), plan.cu (memory and events of a plan), job.cu (puts one job on the streams),
// analyser.cu (analysis of a picture) and the kernels' launches.
#ifndef FRAMED_KERNELS_CUDA_CUDA_H
#define FRAMED_KERNELS_CUDA_CUDA_H

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "kernels/backend.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/schedule.h"

enum { ANALYSING_STREAMS = 4 }; // launches of analyses rotate over them

// The longest time that a sleeping thread takes to wake up.
static const double WAKE_SECONDS = 400e-6;

// Returns the error of a CUDA call from a function that has nothing to undo.
#define CUDA_TRY(call)                                                                             \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess)                                                                 \
            return error_;                                                                         \
    } while (0)

// Times the kernels of one job at a time.
struct stopwatch {
    cudaEvent_t begin[BANDS_MAX], end[BANDS_MAX];
    bool taken;      // by a job in flight; this and the two below are under the backend's lock
    int64_t due_ns;  // CLOCK_MONOTONIC
    uint32_t spread; // state that varies the pauses
    // That job's:
    uint64_t slices; // bit i: slice i was timed
    bool broken;     // a call failed
};

struct backend {
    int device;
    struct schedule_options schedule;
    size_t device_bytes;
    uint8_t uuid[16];
    char description[400];
    int streams; // number of open streams
    cudaStream_t stream[CUDA_STREAMS_MAX];
    cudaStream_t analysing[ANALYSING_STREAMS];
    // Blocking copies: a new plan's tables, and results to memory that is not pinned.
    cudaStream_t aside;

    // Held while a whole frame is put on its stream: threads that enter the driver together spin on
    // its lock, but sleep on this one.
    pthread_mutex_t submitting;

    pthread_t completer;
    bool has_completer;
    pthread_mutex_t lock;    // guards the fields below, and each plan's `idle` and `pending`
    pthread_cond_t work;     // signals jobs, or closing
    pthread_cond_t finished; // signals that a plan's `pending` fell to 0
    struct job *head, *tail; // in flight, in order of submission
    struct stopwatch watch;
    struct device_busy busy;
    unsigned first_stream; // where the next frame starts
    // Number of open analysers; analysers whose pictures wait until one of them launches them all;
    // number of launches so far; and the earliest time of the next one (CLOCK_MONOTONIC).
    int analysers;
    struct analyser *waiting;
    unsigned analyses;
    int64_t analysis_due_ns;
    bool closing, failed;
};

// The buffers of one job in flight.
struct job_slot {
    struct plan *plan;
    struct job_slot *next;           // plan::idle
    uint8_t *staging;                // pinned; NULL if sources are not MEMORY_HOST
    uint8_t *blocks, *device_blocks; // of ops that come with the job, pinned and on the device
    uint8_t *source;                 // device memory; NULL if sources are on the device already
    uint8_t *result[PLAN_OPS_MAX];   // device memory
    cudaEvent_t ready[BANDS_MAX];    // a source band is on the device
    cudaEvent_t computed[BANDS_MAX]; // a slice's steps are done
    cudaEvent_t finished[CUDA_STREAMS_MAX]; // the job's last work on each stream that it used

    // The job's:
    struct image image;          // the kernels' input
    size_t brought, brought_end; // the part of `blocks` that its ops fill; end 0: none
    struct stopwatch *watch;     // the backend's, if the job is timed
    unsigned first_stream;
    uint32_t used;     // bit i: the job put work on stream i
    int ends;          // number of `finished` in use
    cudaError_t error; // the error that stopped putting the job on the streams
};

struct plan {
    struct backend *backend;
    struct image src;
    int ops, slots;
    const struct op *op[PLAN_OPS_MAX];
    struct schedule schedule;
    int wake; // slice whose upload the completion thread sleeps for before it polls
    uint8_t *device, *staging;           // one allocation each, for all slots
    const uint8_t *block[PLAN_OPS_MAX];  // in `device`, from cuda_op.block_pack
    const struct lut *lut[PLAN_OPS_MAX]; // in `device`, also for ops that come with jobs; or NULL
    size_t own_block[PLAN_OPS_MAX]; // offset in job_slot.blocks, for an op that comes with the job
    struct job_slot *slot, *idle;
    int pending; // jobs whose `done` has not returned
    bool timed;  // one of its jobs was timed; under the backend's lock
    double upload_ns, download_ns[PLAN_OPS_MAX]; // of a job, and of each result
    double kernel_rate;                          // ns per result byte; the completion thread's
};

// Copies on the backend's `aside` stream and waits.
cudaError_t cuda_copy(struct backend *, void *dst, const void *src, size_t bytes);

cudaError_t cuda_stopwatch_init(struct stopwatch *);
void cuda_stopwatch_finish(struct stopwatch *); // accepts a zeroed or half-built one
// Returns the stopwatch for the next job of a plan, or NULL if it is not due or is taken. Called
// under the backend's lock.
struct stopwatch *cuda_stopwatch_take(struct plan *);
// Called around the kernels of a slice; do nothing for a slot without a stopwatch. A failed CUDA
// call loses the measurement, not the job.
void cuda_stopwatch_start(const struct job_slot *, int slice, cudaStream_t);
void cuda_stopwatch_stop(const struct job_slot *, int slice, cudaStream_t);

// Computes the copy times of a plan's jobs.
void cuda_copies_init(struct plan *);
// Returns the busy time of a finished job. Completion thread.
struct device_busy cuda_job_busy(struct job_slot *, const struct job *);

// The memory functions of struct backend_driver.
int cuda_pin(struct backend *, void *memory, size_t bytes);
void cuda_unpin(struct backend *, void *memory);
void cuda_unpin_all(struct backend *);
int cuda_export_open(struct backend *, struct device_export *ret, enum export_kind, size_t bytes);
int cuda_export_write(struct backend *, void *to, const void *from, size_t bytes);
void cuda_export_close(struct backend *, struct device_export *);
int cuda_picture_copy(struct backend *, const struct image *to, const struct image *from);

// The analyser functions of struct backend_driver.
int cuda_analyser_open(struct backend *, struct analyser **ret, const struct analysis *,
                       const struct image *src);
void cuda_analyser_close(struct analyser *);
int cuda_analyse(struct analyser *, const struct image *src, struct analysis_result *ret);

// cuda_plan_finish frees the memory of cuda_plan_init; no job may be in flight. A failed init frees
// its own.
struct memory_need cuda_plan_need(const struct image *src, const struct op *const ops[], int n,
                                  int depth);
int cuda_plan_init(struct plan *, struct backend *, const struct image *src,
                   const struct op *const ops[], int n, int depth);
void cuda_plan_finish(struct plan *);
// Return the offset of a source plane in job_slot.source, and the largest stride in bytes that fits
// there.
size_t cuda_source_offset(const struct image *src, int plane);
size_t cuda_source_pitch(const struct image *src, int plane);

// Returns true if the plan has room for the job's own ops.
bool cuda_job_fits(const struct plan *, const struct job *);
// Puts the whole job on the streams, from stream `first_stream` on; never waits for the device.
cudaError_t cuda_job_start(struct job_slot *, struct job *, unsigned first_stream);
// Waits until no work of the job is left, even after an error.
cudaError_t cuda_job_wait(struct job_slot *, struct job *);

// --- kernels: warp.cu, yuv.cu

// One band of one result, from a source of any camera.
struct cuda_item {
    struct image src;    // device memory
    void *dst;           // device memory: the start of the whole result, without padding
    const void *block;   // device memory, from cuda_op.block_pack
    const struct op *op; // host
    struct band band;
};

// The kernels of an op. The block is device memory that they read for one op.
struct cuda_op {
    // Return the block's size, and write it to `host` for use at `device` (16-byte aligned), with
    // the op's LUT at `lut` on the device. NULL if the kernels read no block.
    size_t (*block_bytes)(const struct op *);
    void (*block_pack)(const struct op *, uint8_t *host, uint8_t *device, const struct lut *lut);
    // Returns the size of the largest block of an op that a job may bring in place of this one.
    size_t (*block_room)(const struct op *);
    // Loads the kernels of an op before their first launch, which could otherwise wait for the
    // device.
    cudaError_t (*load)(const struct op *);
    // Launches n items, at most CUDA_ITEMS_MAX, that may share a launch (op.batch) and have the
    // same source format; sizes and layouts may differ.
    cudaError_t (*launch)(const struct cuda_item items[], int n, cudaStream_t);
};

extern const struct cuda_op warp_cuda, yuv_cuda;
extern const struct cuda_op *const cuda_ops[OP_KINDS]; // by enum op_kind

// --- warps: for the op `warp`, and to make resized pictures for `yuv`

// A band of one warp's picture.
struct cuda_warp {
    struct image src;        // device memory
    void *dst;               // device memory: the start of the whole picture, without padding
    const void *block;       // device memory, from warp_block_pack
    const struct warp *warp; // host
    struct band band;
};

// Launches n warps, at most CUDA_ITEMS_MAX, with the same element size and source format. `kept`:
// parts of results of `yuv` whose samples keep their values. Makes one launch for each kernel that
// they need.
cudaError_t warps_launch(const struct cuda_warp warps[], int n, bool kept, cudaStream_t);
// Like cuda_op.load.
cudaError_t warps_load(const struct warp *, bool kept);

// A warp's block in device memory, which its kernels read. Like the members of cuda_op; sizes are
// multiples of 16 bytes.
size_t warp_block_bytes(const struct warp *);
size_t warp_block_room(const struct warp *);
void warp_block_pack(const struct warp *, uint8_t *host, uint8_t *device, const struct lut *lut);
// Returns the block's address of the op's rows; the tables of columns follow as in struct warp.
const struct warp_row *warp_block_rows(const struct warp *, const void *block);

// Returns warp_axis with a LUT for a source and elements of 1, 2 or 4 bytes.
const void *warp_lut_kernel(enum pixel_format source, size_t element_bytes);

#endif
