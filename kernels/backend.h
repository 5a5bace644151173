// A backend runs ops on frames: asynchronously, band by band, with several frames in flight. A plan
// is one camera at one geometry: its ops and the buffers of `depth` jobs.
#ifndef FRAMED_KERNELS_BACKEND_H
#define FRAMED_KERNELS_BACKEND_H

#include "kernels/fingerprint.h"
#include "kernels/motion.h"
#include "kernels/ops.h"
#include "kernels/processors.h"
#include "kernels/statistics.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PLAN_OPS_MAX = 96, // 64 of a camera's outputs, and 32 for viewers
    CUDA_STREAMS_MAX = 32,
};

struct backend_options {
    int workers;    // cpu: threads; 0: one per processor that this process may use
    struct pin pin; // cpu: where they run; the length of a list is the default of `workers`
    int device;     // cuda: ordinal, less than `count`
    // cuda: at most CUDA_STREAMS_MAX; 0: the backend chooses. Band i of a frame is uploaded,
    // computed and downloaded on stream i mod streams.
    int streams;
    size_t band_bytes; // source + result bytes of a band; 0: the backend chooses
};

struct backend;  // defined by each backend
struct plan;     // defined by each backend
struct analyser; // defined by each backend

// Device memory and page-locked host memory required, bytes.
struct memory_need {
    size_t device, pinned;
};

// Device time used by the jobs finished since open, ns: copies in each direction, and kernels. Each
// piece of work is counted with the time that it takes alone, so about one second per second is the
// device's capacity. cuda/busy.cu describes the measurement and its errors.
struct device_busy {
    uint64_t upload, kernel, download;
};

// How another process opens device memory: by a POSIX file descriptor of the CUDA driver's virtual
// memory management, which can be mapped read-only; or by a cudaIpcMemHandle_t, which is always
// writable.
enum export_kind { EXPORT_DESCRIPTOR, EXPORT_IPC };

// One allocation of device memory that another process can open. The caller of export_open owns it
// until export_close.
struct device_export {
    enum export_kind kind;
    void *address;      // in this process
    size_t bytes;       // of the whole allocation; an importer maps all of it
    int fd;             // EXPORT_DESCRIPTOR; else -1
    uint8_t uuid[16];   // the device's
    uint8_t handle[64]; // EXPORT_IPC
};

// Where one op of a plan writes the result of a job.
struct job_result {
    // op.dst_bytes, tight; NULL: no result is made. Host memory, pinned or not; or, with
    // MEMORY_CUDA, device memory (an export's) that the kernel writes directly.
    void *data;
    enum memory memory;
    bool filled; // data holds a complete earlier result of the same op: its fill may be skipped
    // Replaces the plan's op for this result; NULL: the plan's op makes it. Requires that the
    // plan's op has `moves` set (a region with another place in each picture), op_replaces(op,
    // plan's op), and a scale no larger than the plan's op has: make the plan's op for the whole
    // picture.
    const struct op *op;
};

// One frame's work. The submitter owns the struct and keeps it, `src`, `results` and everything
// they point to alive until `done`.
struct job {
    struct image src; // same shape and kind of memory as the plan's source
    struct job_result *results;
    int n; // results: one per op of the plan, in their order
    // Called exactly once per job whose submit returned 0, on a backend thread, never from within
    // submit. status: 0; -EIO if the device failed; -EREMOTEIO if only this job failed and the
    // device continues. Must not block.
    void (*done)(struct job *, int status);
    void *opaque;     // the submitter's
    void *slot;       // the backend's while the job is in flight
    struct job *next; // the backend's
};

// --- analysis
//
// Analyses the luma of a camera's pictures, in three ops in sequence: statistics with sums of cells
// (kernels/statistics.h), then motion (kernels/motion.h) and a fingerprint (kernels/fingerprint.h)
// from those sums. Every version gives the same bytes.
//
// An analysis holds the tables for one geometry. An analyser, opened by a backend, holds one
// camera's state: the background that motion is compared with.

struct analysis_params {
    struct statistics_params statistics;
    struct motion_params motion;
};

// Made for one source geometry; never changes.
struct analysis {
    struct statistics statistics;
    struct motion motion;
    struct fingerprint_cells fingerprint;
};

// Result of one picture, in the analyser's memory: valid until its next picture.
struct analysis_result {
    struct luma_statistics luma;
    const uint8_t *grid; // means, statistics.grid_columns x statistics.grid_rows, row by row
    uint64_t fingerprint;
    const struct motion_boxes *motion;
};

// For pictures with the format, size and colour of `src`. Returns 0, or -EINVAL from one of the
// three inits. `ret_why` is set by motion_init alone: unchanged where statistics_init fails.
int analysis_init(struct analysis *, const struct analysis_params *, const struct image *src,
                  const char **ret_why);

// --- drivers

struct backend_driver {
    const char *name; // "cpu", "cuda"
    bool takes_cuda;  // accepts sources in MEMORY_CUDA of the device's primary context
    int depth;        // jobs in flight that keep it busy with one camera; 0: unknown

    // Number of such devices on this machine; NULL: one.
    int (*count)(void);
    // Returns -ENODEV without such a device or driver.
    int (*open)(struct backend **ret, const struct backend_options *);
    void (*close)(struct backend *); // all plans must be closed before; accepts NULL
    // Description for a log line ("4 workers", "NVIDIA H200, 8 streams"); lives as long as the
    // backend.
    const char *(*describe)(struct backend *);

    // Total device memory, bytes. NULL: there is none.
    size_t (*device_bytes)(struct backend *);
    // The 16 bytes that identify the device in every process. NULL: there is none.
    const uint8_t *(*device_uuid)(struct backend *);

    // Any thread. NULL: there is no device.
    struct device_busy (*busy)(struct backend *);

    // Page-locks `bytes` at `memory`, both multiples of the page size: frames there are
    // MEMORY_PINNED and results are downloaded in place. No-op on the cpu. The caller keeps the
    // memory and unpins it before unmapping it, before close, and after the jobs that use it.
    // Backends of several devices may pin the same memory: it stays page-locked until the last of
    // them unpins it. Any thread. Returns 0, -ENOMEM or -EIO.
    int (*pin)(struct backend *, void *memory, size_t bytes);
    void (*unpin)(struct backend *, void *memory); // accepts NULL

    // Zeroed. Any thread. NULL: no device memory. Returns 0, -ENOMEM, -ENOTSUP or -EIO.
    int (*export_open)(struct backend *, struct device_export *ret, enum export_kind, size_t bytes);
    void (*export_close)(struct backend *, struct device_export *);
    // Copies host memory to exported memory; returns when the copy is done. 0 or -EIO.
    int (*export_write)(struct backend *, void *to, const void *from, size_t bytes);

    // Copies a picture on the device to another place on it with the same format and size; returns
    // when the copy is done. NULL: no device memory. 0 or -EIO.
    int (*picture_copy)(struct backend *, const struct image *to, const struct image *from);

    // Memory that plan_open with the same arguments takes. Requires no open backend.
    struct memory_need (*plan_need)(const struct image *src, const struct op *const ops[], int n,
                                    int depth);
    // `ops` (n, made for sources like `src`) must outlive the plan. `depth`: the most jobs in
    // flight at once. src->memory: where the sources will be. Blocks; not for the loop thread.
    int (*plan_open)(struct backend *, struct plan **ret, const struct image *src,
                     const struct op *const ops[], int n, int depth);
    // Waits for the plan's jobs to be done; accepts NULL. Call it after every submit has returned:
    // a job may be done before the call that submitted it returns.
    void (*plan_close)(struct plan *);

    // Starts a job; never waits for the device. Returns -EBUSY with `depth` jobs in flight already,
    // -EIO after a device failure, -EINVAL for a job that does not suit the plan. On error `done`
    // is not called.
    int (*submit)(struct plan *, struct job *);

    // Opens an analyser of one camera's pictures, without history. Pictures are in MEMORY_CUDA of
    // the device, or in host memory on the cpu, whose analyser runs in the calling thread and
    // requires no backend (NULL). `analysis`, made for sources like `src`, must outlive it. Not for
    // the loop thread. Returns 0, -ENOMEM or -EIO.
    int (*analyser_open)(struct backend *, struct analyser **ret, const struct analysis *analysis,
                         const struct image *src);
    void (*analyser_close)(struct analyser *); // accepts NULL
    // Analyses the camera's next picture. Blocks until *ret is set: a fraction of a millisecond, or
    // up to two if a device analyses the pictures of many cameras together. One thread at a time.
    // Returns 0, or -EIO if the device has failed.
    int (*analyse)(struct analyser *, const struct image *src, struct analysis_result *ret);

    // After a failure, between close and the next open with the same options: releases everything
    // that this process still has on the device, whichever code made it, so that open finds a sound
    // device. Nothing may use the device meanwhile. NULL: nothing to reset.
    void (*reset)(const struct backend_options *);
};

// True if the job has one result per op of the plan, and each op that it brings may replace the
// plan's.
bool job_suits(const struct job *, const struct op *const ops[], int n);

extern const struct backend_driver cpu_backend;
extern const struct backend_driver cuda_backend; // in builds with FRAMED_CUDA only

#ifdef __cplusplus
}
#endif
#endif
