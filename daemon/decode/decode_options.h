// What a decoder is opened with, and the device that decoders share. nvdec.c implements the device.
#ifndef FRAMED_DAEMON_DECODE_DECODE_OPTIONS_H
#define FRAMED_DAEMON_DECODE_DECODE_OPTIONS_H

#include "config/config.h"
#include "daemon/base/stage_watch.h"

// The one hardware context of the process, shared by all decoders; wraps the device's primary CUDA
// context. NULL in *ret and -ENODEV where there is none.
struct decode_device;
// At most `threads` of them are inside NVDEC at a time, first come first served: more only fight
// over the context. Decoders are opened one at a time.
int decode_device_open(struct decode_device **ret, int ordinal, int threads);
// How long threads were inside NVDEC since it was opened, added up and shared by as many as may be
// inside at once.
uint64_t decode_device_busy_ns(struct decode_device *);
void decode_device_close(struct decode_device *); // accepts NULL; after every decoder and frame

struct hardware_record;

struct decode_options {
    struct decoder_choice decode;
    const struct hardware_record *verified; // for `auto`, outlives the decoder; NULL: nothing is
    int threads;                            // of the cpu decoder
    bool low_delay;                // for live sources: threads share a picture, and hold none back
    int in_flight;                 // frames that may be held at once beside the decoder's own
    struct memory_reserve *memory; // NULL: not limited
    size_t planned;                // bytes that the plan has for a decoder on the cpu
    enum damaged damaged;
    enum decoded_pictures pictures; // that are decoded
    bool check_hashes;              // of H.265's pictures, decoded on the cpu
    bool losses_known;              // packets say what is missing, and libavcodec need not be asked
    struct stage_watch *stages;     // NULL: nobody watches
};

// What decoder_join takes.
struct decode_target {
    const struct backend_driver *driver;
    struct backend *backend;
    struct decode_device *device; // NULL: no NVDEC
};

// Why the cpu took over.
enum fallback { FALLBACK_NONE, FALLBACK_NOT_OPENED, FALLBACK_REFUSED, FALLBACK_FAILED };

#endif
