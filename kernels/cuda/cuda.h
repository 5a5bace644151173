// Private to the CUDA backend: backend.cu (the backend and its completion thread), link.cu (how
// fast the device copies), busy.cu (how much of its time is taken), memory.cu (memory of the caller
// and of other processes), plan.cu (memory and events of a plan), job.cu (one job onto the
// streams), analyser.cu (a picture's analysis) and the kernels' launches.
#ifndef FRAMED_KERNELS_CUDA_CUDA_H
#define FRAMED_KERNELS_CUDA_CUDA_H

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "kernels/backend.h"
#include "kernels/cuda/cuda_errno.h"
#include "kernels/cuda/schedule.h"

enum { ANALYSING_STREAMS = 4 }; // launches of analyses take turns on them

// The most that a sleeping thread takes to wake up.
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
    bool taken;      // by a job in flight; like the two below under the backend's lock
    int64_t due_ns;  // CLOCK_MONOTONIC
    uint32_t spread; // of the times in between
    // Of that job:
    uint64_t slices; // bit i: slice i was timed
    bool broken;     // a call failed
};

struct backend {
    int device;
    struct schedule_options schedule;
    size_t device_bytes;
    uint8_t uuid[16];
    char description[400];
    int streams; // opened
    cudaStream_t stream[CUDA_STREAMS_MAX];
    cudaStream_t analysing[ANALYSING_STREAMS];
    // Blocking copies: a new plan's tables, and results that go to memory that is not pinned.
    cudaStream_t aside;

    // Whole frames go onto their stream one at a time: many threads inside the driver at once spin
    // for its lock, in this one they sleep.
    pthread_mutex_t submitting;

    pthread_t completer;
    bool has_completer;
    pthread_mutex_t lock;    // what follows, and each plan's `idle` and `pending`
    pthread_cond_t work;     // there are jobs, or closing
    pthread_cond_t finished; // a plan's `pending` fell to 0
    struct job *head, *tail; // in flight, in order of submission
    struct stopwatch watch;
    struct device_busy busy;
    unsigned first_stream; // the stream that the next frame starts on
    // Analysers that are open; those whose pictures wait to be analysed together, one of which is
    // to launch them all; launches so far, and before when the next is not to be (CLOCK_MONOTONIC).
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
    uint8_t *staging;                // pinned; NULL where sources are not MEMORY_HOST
    uint8_t *blocks, *device_blocks; // of ops that come with the job, pinned and on the device
    uint8_t *source;                 // device memory; NULL where sources are on the device already
    uint8_t *result[PLAN_OPS_MAX];   // device memory
    cudaEvent_t ready[BANDS_MAX];    // a source band is on the device
    cudaEvent_t computed[BANDS_MAX]; // a slice's steps are
    cudaEvent_t finished[CUDA_STREAMS_MAX]; // the job's last work on each stream that it used

    // Of the job:
    struct image image;          // what the kernels read
    size_t brought, brought_end; // the part of `blocks` that its ops fill; no end: none
    struct stopwatch *watch;     // the backend's, where the job is timed
    unsigned first_stream;
    uint32_t used;     // bit i: the job put work on stream i
    int ends;          // of `finished`
    cudaError_t error; // putting the job onto the streams broke off with this
};

struct plan {
    struct backend *backend;
    struct image src;
    int ops, slots;
    const struct op *op[PLAN_OPS_MAX];
    struct schedule schedule;
    int wake;                            // slice: the completion thread sleeps no longer
    uint8_t *device, *staging;           // one allocation each, for all slots
    const uint8_t *block[PLAN_OPS_MAX];  // in `device`: what cuda_op.block_pack made
    const struct lut *lut[PLAN_OPS_MAX]; // in `device`, also of ops that come with jobs; NULL: none
    size_t own_block[PLAN_OPS_MAX];      // in job_slot.blocks: of an op that comes with the job
    struct job_slot *slot, *idle;
    int pending;                                 // jobs whose `done` has not returned
    bool timed;                                  // one of its jobs was; under the backend's lock
    double upload_ns, download_ns[PLAN_OPS_MAX]; // of a job, and of each result
    double kernel_rate;                          // ns a result byte; the completion thread's
};

// Copies and waits, on the backend's `aside` stream.
cudaError_t cuda_copy(struct backend *, void *dst, const void *src, size_t bytes);

// Measures with a few small copies, in some milliseconds. What cannot be is left as in
// link_default.
void cuda_link_measure(struct link *, int device);

cudaError_t cuda_stopwatch_init(struct stopwatch *);
void cuda_stopwatch_finish(struct stopwatch *); // accepts a zeroed one, and one half made
// The stopwatch for the next job of a plan, or NULL: it is not due, or taken. Under the backend's
// lock.
struct stopwatch *cuda_stopwatch_take(struct plan *);
// Around the kernels of a slice; nothing for a slot without a stopwatch. A call of CUDA's that
// fails costs the measurement and not the job.
void cuda_stopwatch_start(const struct job_slot *, int slice, cudaStream_t);
void cuda_stopwatch_stop(const struct job_slot *, int slice, cudaStream_t);

// What the copies of a plan's jobs take.
void cuda_copies_init(struct plan *);
// What a job that is done took. Completion thread.
struct device_busy cuda_job_busy(struct job_slot *, const struct job *);

// The backend's part of struct backend_driver that concerns memory.
int cuda_pin(struct backend *, void *memory, size_t bytes);
void cuda_unpin(struct backend *, void *memory);
void cuda_unpin_all(struct backend *);
int cuda_export_open(struct backend *, struct device_export *ret, enum export_kind, size_t bytes);
int cuda_export_write(struct backend *, void *to, const void *from, size_t bytes);
void cuda_export_close(struct backend *, struct device_export *);
int cuda_picture_copy(struct backend *, const struct image *to, const struct image *from);

// The backend's analyser.
int cuda_analyser_open(struct backend *, struct analyser **ret, const struct analysis *,
                       const struct image *src);
void cuda_analyser_close(struct analyser *);
int cuda_analyse(struct analyser *, const struct image *src, struct analysis_result *ret);

// plan_finish frees what plan_init made; no job may be in flight. init undoes itself on failure.
struct memory_need cuda_plan_need(const struct image *src, const struct op *const ops[], int n,
                                  int depth);
int cuda_plan_init(struct plan *, struct backend *, const struct image *src,
                   const struct op *const ops[], int n, int depth);
void cuda_plan_finish(struct plan *);
// Where a plane of the source starts in slot::source, and the most bytes from row to row that it
// has room for.
size_t cuda_source_offset(const struct image *src, int plane);
size_t cuda_source_pitch(const struct image *src, int plane);

// Whether the plan has room for what the job brings.
bool cuda_job_fits(const struct plan *, const struct job *);
// Puts the whole job onto the streams, from stream `first_stream` on; never waits for the device.
cudaError_t cuda_job_start(struct job_slot *, struct job *, unsigned first_stream);
// Waits until no work of the job is left, also after an error.
cudaError_t cuda_job_wait(struct job_slot *, struct job *);

// --- kernels: warp.cu, yuv.cu

// One band of one result, of a source of any camera.
struct cuda_item {
    struct image src;    // device memory
    void *dst;           // device memory: the start of the whole result, which is tight
    const void *block;   // device memory: what cuda_op.block_pack made
    const struct op *op; // host
    struct band band;
};

// The kernels of an op. The block is device memory that they read for one op.
struct cuda_op {
    // The bytes of the block, and its content in `host` for a block that will lie at `device`
    // (16-byte aligned); `lut`: where the op's LUT lies on the device. NULL: the kernels read none.
    size_t (*block_bytes)(const struct op *);
    void (*block_pack)(const struct op *, uint8_t *host, uint8_t *device, const struct lut *lut);
    // The bytes of the largest block of an op that may come with a job in this one's place.
    size_t (*block_room)(const struct op *);
    // Loads the kernels that an op needs ahead of their first launch, which could wait for the
    // device.
    cudaError_t (*load)(const struct op *);
    // For n items, CUDA_ITEMS_MAX at most, that may share a launch (op.batch) and have the same
    // format of source; sizes and layouts may differ.
    cudaError_t (*launch)(const struct cuda_item items[], int n, cudaStream_t);
};

extern const struct cuda_op warp_cuda, yuv_cuda;
extern const struct cuda_op *const cuda_ops[OP_KINDS]; // by enum op_kind

#endif
