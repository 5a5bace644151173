// What a device does raw, without a backend: the limits that `framed-bench` holds a backend
// against. One thread; it waits for the device.
#ifndef FRAMED_TESTS_BENCH_MEASURE_H
#define FRAMED_TESTS_BENCH_MEASURE_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct measure; // each driver's own

// Copies that run together: `up` of them to the device and `down` of them back, of that many bytes
// each, from and to consecutive host memory.
struct measure_copies {
    const uint8_t *from;
    uint8_t *to;
    size_t up_bytes, down_bytes; // of one copy
    int up, down;
    bool in_turn; // in one queue, all up before the first down; else each direction has its own
};

// What a round cost, seconds: from its start until all of it was known to be done; the processor
// time of this thread until all was on its way, and of the whole process; and of the kernels.
struct measure_cost {
    double wall, submit, cpu, kernel;
};

// All times are seconds of one round; each call does `rounds` rounds and fills seconds[rounds]. 0,
// -ENOMEM or -EIO.
struct measure_driver {
    // -ENODEV: no such device or driver on this box.
    int (*open)(struct measure **ret, int device);
    void (*close)(struct measure *); // accepts NULL
    const char *(*describe)(struct measure *);
    double (*memory_peak)(struct measure *);  // bytes/s by clock and width; 0: not known
    size_t (*memory_used)(struct measure *);  // bytes of the device's memory, by every process
    void *(*alloc)(struct measure *, size_t); // the runtime's own page-locked memory; NULL: none
    void (*free)(struct measure *, void *);   // accepts NULL

    int (*copies)(struct measure *, const struct measure_copies *, int rounds, double seconds[]);
    // Device memory to device memory.
    int (*device_copy)(struct measure *, size_t bytes, int rounds, double seconds[]);
    // The kernel alone, over n different pictures on the device, all like src[0]: a launch for
    // each, one after another, or one launch of all.
    int (*warp)(struct measure *, const struct image src[], int n, const struct op *, bool together,
                int rounds, double seconds[]);
    // The kernels alone that make all elements of a picture on the device, as a job launches them.
    int (*elements)(struct measure *, const struct image *src, const struct op *const ops[], int n,
                    int rounds, double seconds[]);
    // n pictures of cameras of their own, all like src[0], which are ready at once on the device,
    // to results there: a job of the backend for each, or one launch of all that this thread waits
    // for. Fills costs[rounds].
    int (*ready)(struct measure *, const struct image src[], int n, const struct op *,
                 bool together, int rounds, struct measure_cost costs[]);
    // The kernel alone over a whole picture.
    int (*yuv)(struct measure *, const struct image *src, const struct op *, int rounds,
               double seconds[]);
    // A whole picture up, converted and down, one after another on the default stream: what plain
    // code does. `to` has op->dst_bytes.
    int (*yuv_plain)(struct measure *, const struct image *src, const struct op *, uint8_t *to,
                     int rounds, double seconds[]);
};

extern const struct measure_driver cuda_measure; // in builds with FRAMED_CUDA only

// The bytes of sources like `src` (strides are read, planes are not) that a warp must read, in
// whole pieces of `piece` bytes, each counted once. A tap of weight 0 counts with `every_tap` only.
// 0: no memory.
size_t warp_reads(const struct warp *, const struct image *src, size_t piece, bool every_tap);

#ifdef __cplusplus
}
#endif
#endif
