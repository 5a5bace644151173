// What a camera's thread tells of its work while it goes on: that thread adds, any thread reads.
// Zeroed it is ready.
#ifndef FRAMED_DAEMON_CAMERA_STAGE_TIMING_H
#define FRAMED_DAEMON_CAMERA_STAGE_TIMING_H

#include <stdatomic.h>
#include <stdint.h>

#include "config/config.h"
#include "daemon/base/clock.h"
#include "daemon/decode/frame.h"

// What the thread is at: waits for packets, decodes them, waits for the backend or for clients.
enum camera_stage { STAGE_READ, STAGE_DECODE, STAGE_SUBMIT, CAMERA_STAGES };

// The flags of pictures that are counted.
enum counted_flag { COUNTED_DAMAGED, COUNTED_INTERLACED, COUNTED_HDR, COUNTED_FLAGS };

struct stage_timing {
    _Atomic uint64_t pictures; // that the decoder gave out
    _Atomic uint64_t flagged[COUNTED_FLAGS];
    _Atomic uint64_t converted; // by libswscale, to a format that kernels read
    _Atomic uint64_t size;      // of the last: width << 32 | height
    // Of struct stream_memory, for as long as `size` holds; 0: not known yet.
    _Atomic int pixel_bits, kept, surfaces, macroblock_bytes, codec;
    _Atomic uint64_t spent_ns[CAMERA_STAGES];
    const char *_Atomic backend; // that its pictures go to, its name; NULL: to none yet
    _Atomic int64_t submit_ns;   // when STAGE_SUBMIT began, if the thread is in it; else 0
    int64_t lap_ns;              // the thread's own: up to when the time is counted
};

// Time counts from now on.
static inline void stage_timing_start(struct stage_timing *progress)
{
    progress->lap_ns = monotonic_ns();
}

// STAGE_SUBMIT begins, which may take as long as a client likes.
static inline void stage_timing_submit(struct stage_timing *progress)
{
    atomic_store_explicit(&progress->submit_ns, progress->lap_ns, memory_order_relaxed);
}

// The time since the last call went into `leg`.
static inline void stage_timing_lap(struct stage_timing *progress, enum camera_stage leg)
{
    int64_t before = progress->lap_ns;
    stage_timing_start(progress);
    atomic_store_explicit(&progress->submit_ns, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&progress->spent_ns[leg], (uint64_t)(progress->lap_ns - before),
                              memory_order_relaxed);
}

void stage_timing_picture(struct stage_timing *, const struct frame *);
const char *counted_flag_name(enum counted_flag); // "damaged"

static inline void stage_timing_memory(struct stage_timing *progress,
                                       const struct stream_memory *memory)
{
    atomic_store_explicit(&progress->pixel_bits, memory->pixel_bits, memory_order_relaxed);
    atomic_store_explicit(&progress->kept, memory->pictures, memory_order_relaxed);
    atomic_store_explicit(&progress->surfaces, memory->surfaces, memory_order_relaxed);
    atomic_store_explicit(&progress->codec, (int)memory->codec, memory_order_relaxed);
    atomic_store_explicit(&progress->macroblock_bytes, memory->macroblock_bytes,
                          memory_order_relaxed);
}

#endif
