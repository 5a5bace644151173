// Raw speed of a device without a backend: the limits `framed-bench` holds a backend against. One
// thread; it waits for the device.
#ifndef FRAMED_TESTS_BENCH_MEASURE_H
#define FRAMED_TESTS_BENCH_MEASURE_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct measure; // each driver's own

// Copies that run together: `up` of them to the device and `down` of them back, each of the given
// size, from and to consecutive host memory.
struct measure_copies {
    const uint8_t *from;
    uint8_t *to;
    size_t up_bytes, down_bytes; // per copy
    int up, down;
    bool in_turn; // one queue, all uploads before the first download; else one queue per direction
};

// Cost of a round in seconds. wall: from its start until all of it is known to be done; submit:
// this thread's processor time until all is queued; cpu: the whole process's; kernel: the kernels'.
struct measure_cost {
    double wall, submit, cpu, kernel;
};

// All times are seconds of one round; each call does `rounds` rounds and fills seconds[rounds].
// Returns 0, -ENOMEM or -EIO.
struct measure_driver {
    // Returns -ENODEV if this machine has no such device or driver.
    int (*open)(struct measure **ret, int device);
    void (*close)(struct measure *); // accepts NULL
    const char *(*describe)(struct measure *);
    double (*memory_peak)(struct measure *);  // bytes/s by clock and width; 0: unknown
    size_t (*memory_used)(struct measure *);  // device memory in use by all processes, bytes
    void *(*alloc)(struct measure *, size_t); // page-locked memory of the runtime; NULL: failed
    void (*free)(struct measure *, void *);   // accepts NULL

    int (*copies)(struct measure *, const struct measure_copies *, int rounds, double seconds[]);
    // Copies device memory to device memory.
    int (*device_copy)(struct measure *, size_t bytes, int rounds, double seconds[]);
    // Runs only the kernel over n different pictures on the device, all shaped like src[0]: one
    // launch each, one after another, or one launch for all.
    int (*warp)(struct measure *, const struct image src[], int n, const struct op *, bool together,
                int rounds, double seconds[]);
    // Only the kernels that make all elements of a picture on the device, as a job launches them.
    int (*elements)(struct measure *, const struct image *src, const struct op *const ops[], int n,
                    int rounds, double seconds[]);
    // Processes n pictures of different cameras, all shaped like src[0] and ready at once on the
    // device, to results there: one backend job each, or one launch for all that this thread waits
    // for. Fills costs[rounds].
    int (*ready)(struct measure *, const struct image src[], int n, const struct op *,
                 bool together, int rounds, struct measure_cost costs[]);
    // Runs only the kernel over a whole picture.
    int (*yuv)(struct measure *, const struct image *src, const struct op *, int rounds,
               double seconds[]);
    // Uploads, converts and downloads a whole picture one step after another on the default stream,
    // as plain code does. `to` holds op->dst_bytes.
    int (*yuv_plain)(struct measure *, const struct image *src, const struct op *, uint8_t *to,
                     int rounds, double seconds[]);
};

extern const struct measure_driver cuda_measure; // only in builds with FRAMED_CUDA

// Returns the bytes a warp must read from sources like `src` (strides are read, planes are not), in
// whole pieces of `piece` bytes, each counted once. Taps of weight 0 count only with `every_tap`.
// Returns 0 without memory.
size_t warp_reads(const struct warp *, const struct image *src, size_t piece, bool every_tap);

#ifdef __cplusplus
}
#endif
#endif
