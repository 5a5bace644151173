// Options of a decoder, and the device that decoders share. nvdec.c implements the device.
#ifndef FRAMED_DAEMON_CODEC_DECODE_OPTIONS_H
#define FRAMED_DAEMON_CODEC_DECODE_OPTIONS_H

#include "config/config.h"
#include "daemon/base/stage_watch.h"

// A GPU's hardware context, shared by all of its decoders; wraps its primary CUDA context. *ret is
// NULL with -ENODEV if there is none.
struct decode_device;
// At most `threads` threads are inside NVDEC at a time, first come first served: more would only
// fight over the context. Decoders are opened one at a time.
int decode_device_open(struct decode_device **ret, int ordinal, int threads);
// Returns the time that threads have been inside NVDEC since it was opened, summed up and divided
// by the number that may be inside at once.
uint64_t decode_device_busy_ns(struct decode_device *);
void decode_device_close(struct decode_device *); // accepts NULL; after every decoder and frame

struct hardware_record;

struct decode_options {
    struct decoder_choice decode;
    const struct hardware_record *verified; // for `auto`, outlives the decoder; NULL: none
    int threads;                            // of the cpu decoder
    bool low_delay;                // for live sources: threads share a picture and hold none back
    int in_flight;                 // frames that may be held at once besides the decoder's own
    struct memory_reserve *memory; // NULL: not limited
    size_t planned;                // bytes planned for a decoder on the cpu
    enum damaged damaged;
    enum decoded_pictures pictures; // to decode
    bool check_hashes;              // of H.265 pictures decoded on the cpu
    bool losses_known;              // packets report losses, so libavcodec need not
    struct stage_watch *stages;     // NULL: not watched
};

// The argument of decoder_join.
struct decode_target {
    const struct backend_driver *driver;
    struct backend *backend;
    struct decode_device *device; // NULL: no NVDEC
};

// The reason why the cpu took over.
enum fallback { FALLBACK_NONE, FALLBACK_NOT_OPENED, FALLBACK_REFUSED, FALLBACK_FAILED };

#endif
