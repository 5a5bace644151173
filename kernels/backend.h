// A backend runs ops on frames: asynchronously, band by band, with several frames in flight.
// A plan is one camera at one geometry: its ops and the buffers of `depth` jobs.
#ifndef FRAMED_KERNELS_BACKEND_H
#define FRAMED_KERNELS_BACKEND_H

#include "kernels/analysis.h"
#include "kernels/ops.h"
#include "kernels/processors.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PLAN_OPS_MAX = 64,
    CUDA_STREAMS_MAX = 32,
};

struct backend_options {
    int workers;    // cpu: threads; 0 = one for each processor that this process may use
    struct pin pin; // cpu: where they run; a list says also how many where `workers` does not
    int device;     // cuda: ordinal, less than `count`
    // cuda: 0 = chosen by the backend; else at most CUDA_STREAMS_MAX, and band i of a frame is
    // uploaded, computed and downloaded on stream i mod streams.
    int streams;
    size_t band_bytes; // source + result bytes of a band; 0 = chosen by the backend
};

struct backend;  // each backend's own
struct plan;     // each backend's own
struct analyser; // each backend's own

// What something takes of the device's memory and of page-locked host memory, bytes.
struct memory_need {
    size_t device, pinned;
};

// How long the jobs done since open took the device, ns: its copies each way, and its kernels. Each
// piece of work counts for as long as it takes alone, so that a second of it in a second is
// about all that the device can do. How that is known, and where it errs: cuda/busy.cu.
struct device_busy {
    uint64_t upload, kernel, download;
};

// How another process opens device memory: by a POSIX file descriptor of the CUDA driver's virtual
// memory management, which it can map to read alone; or by a cudaIpcMemHandle_t, always to write
// too.
enum export_kind { EXPORT_DESCRIPTOR, EXPORT_IPC };

// Device memory of one allocation that another process can open. The opener owns it until
// export_close.
struct device_export {
    enum export_kind kind;
    void *address;      // in this process
    size_t bytes;       // of the whole allocation, which is also what an importer maps
    int fd;             // EXPORT_DESCRIPTOR; else -1
    uint8_t uuid[16];   // of the device
    uint8_t handle[64]; // EXPORT_IPC
};

// Where one op of a plan writes the result of a job.
struct job_result {
    // op.dst_bytes, tight; NULL: the result is left out. Host memory in a pinned range or any
    // other, or with MEMORY_CUDA memory of the device (an export's), which the kernel then writes
    // itself.
    void *data;
    enum memory memory;
    bool filled; // data holds a whole earlier result of the same op: its fill need not be written
    // Makes this result in place of the plan's op, which says that it moves: a region that is
    // somewhere else in each picture. op_replaces(op, the plan's), and it reads the source at no
    // larger a scale: make the plan's op for the whole picture. NULL: the plan's op makes it.
    const struct op *op;
};

// One frame's work. The submitter owns the struct and keeps it, `src`, `results` and what they name
// alive until `done`.
struct job {
    struct image src; // shaped like the plan's source, in memory of the same kind
    struct job_result *results;
    int n; // results: one for each op of the plan, in their order
    // Called once for every job whose submit returned 0, on a thread of the backend, never from
    // within submit. status: 0, -EIO if the device failed, or -EREMOTEIO if this job alone failed
    // and the device goes on. It must not block.
    void (*done)(struct job *, int status);
    void *opaque;     // the submitter's
    void *slot;       // the backend's while the job is in flight
    struct job *next; // the backend's
};

struct backend_driver {
    const char *name; // "cpu", "cuda"
    bool takes_cuda;  // sources may lie in MEMORY_CUDA of the device's primary context
    int depth;        // jobs in flight that keep it busy with one camera; 0: not known

    // How many devices of its kind this box has; NULL: one.
    int (*count)(void);
    // -ENODEV: no such device or driver on this box.
    int (*open)(struct backend **ret, const struct backend_options *);
    void (*close)(struct backend *); // every plan must be closed before; accepts NULL
    // What a log line says of it ("4 workers", "NVIDIA H200, 8 streams"); lives as long as the
    // backend.
    const char *(*describe)(struct backend *);

    // Memory of the device, all of it, bytes; NULL where there is none.
    size_t (*device_bytes)(struct backend *);
    // The 16 bytes that name the device in every process; NULL where there is none.
    const uint8_t *(*device_uuid)(struct backend *);

    // NULL where there is no device. Any thread.
    struct device_busy (*busy)(struct backend *);

    // Page-locks `bytes` at `memory`, both multiples of the page size, so that frames there are
    // MEMORY_PINNED and results there are downloaded in place; for the cpu there is nothing to do.
    // The memory stays the caller's, who unpins it before it is unmapped, before close, and after
    // the jobs that use it. Backends of several devices may pin the same memory: it stays
    // page-locked until the last of them unpins it. Any thread. 0, -ENOMEM or -EIO.
    int (*pin)(struct backend *, void *memory, size_t bytes);
    void (*unpin)(struct backend *, void *memory); // accepts NULL

    // NULL where there is no device memory. Zeroed. Any thread. 0, -ENOMEM, -ENOTSUP or -EIO.
    int (*export_open)(struct backend *, struct device_export *ret, enum export_kind, size_t bytes);
    void (*export_close)(struct backend *, struct device_export *);
    // Copies host memory to memory that export_open gave; returns when it is there. 0 or -EIO.
    int (*export_write)(struct backend *, void *to, const void *from, size_t bytes);

    // Copies a picture that lies on the device to another place there, which has the same format
    // and size; returns when it is there. NULL where there is no device memory. 0 or -EIO.
    int (*picture_copy)(struct backend *, const struct image *to, const struct image *from);

    // What plan_open with the same arguments takes. Needs no open backend.
    struct memory_need (*plan_need)(const struct image *src, const struct op *const ops[], int n,
                                    int depth);
    // `ops` (n of them, made for sources like `src`) must outlive the plan. `depth`: the most jobs
    // that will be in flight at once. src->memory says where the sources will be. Blocks; not for
    // the loop thread.
    int (*plan_open)(struct backend *, struct plan **ret, const struct image *src,
                     const struct op *const ops[], int n, int depth);
    // Waits for the plan's jobs to be done; accepts NULL. Every submit has returned before it is
    // called: a job may be done while the call that submitted it is still under way.
    void (*plan_close)(struct plan *);

    // Starts a job; never waits for the device. -EBUSY where `depth` jobs are in flight already,
    // -EIO where the device has failed, -EINVAL where the job does not suit the plan. On error done
    // is not called.
    int (*submit)(struct plan *, struct job *);

    // An analyser of one camera's pictures, which has seen none yet. They are in MEMORY_CUDA of the
    // device, or with the cpu in memory of the host: its analyser works in the thread that calls
    // it, and needs no backend (NULL). `analysis`, made for sources like `src`, must outlive it.
    // Not for the loop thread. 0, -ENOMEM or -EIO.
    int (*analyser_open)(struct backend *, struct analyser **ret, const struct analysis *analysis,
                         const struct image *src);
    void (*analyser_close)(struct analyser *); // accepts NULL
    // The camera's next picture. Blocks until *ret is there: a fraction of a millisecond, or up to
    // two where a device analyses the pictures of many cameras together. One thread at a time. 0,
    // or -EIO where the device has failed.
    int (*analyse)(struct analyser *, const struct image *src, struct analysis_result *ret);

    // After a failure, between close and the next open with the same options: gives up all that
    // this process still has on the device, whoever made it, so that open finds a sound one. Nobody
    // may use the device meanwhile. NULL where there is nothing to reset.
    void (*reset)(const struct backend_options *);
};

// Whether a job's results are as many as the plan's ops, and the ops that it brings may stand in
// their places.
bool job_suits(const struct job *, const struct op *const ops[], int n);

extern const struct backend_driver cpu_backend;
extern const struct backend_driver cuda_backend; // in builds with FRAMED_CUDA only

#ifdef __cplusplus
}
#endif
#endif
