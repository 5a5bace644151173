// Decoding on NVDEC: the device that cameras share, the order in which they use its driver, and the
// set-up of a libavcodec decoder for it.
#ifndef FRAMED_DAEMON_CODEC_NVDEC_H
#define FRAMED_DAEMON_CODEC_NVDEC_H

#include <libavcodec/avcodec.h>
#include <libavutil/hwcontext.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Admits a limited number of threads at a time, in order of arrival. Thread-safe.
struct fair_semaphore {
    pthread_mutex_t mutex;
    int room; // places left: above 0 only while nobody waits, below 0 after fair_semaphore_take
              // took more than were free
    struct fair_semaphore_waiter *first, **last; // in line
    int places;                                  // total
    uint64_t used_ns; // time that places were taken, summed over them up to since_ns
    int64_t since_ns; // CLOCK_MONOTONIC
};

void fair_semaphore_init(struct fair_semaphore *, int places);
void fair_semaphore_finish(struct fair_semaphore *); // with nobody inside
void fair_semaphore_enter(struct fair_semaphore *);
// Takes `places` without waiting. The limit for other threads is that much lower until they are
// left.
void fair_semaphore_take(struct fair_semaphore *, int places);
// Any thread, on behalf of one that is inside.
void fair_semaphore_leave(struct fair_semaphore *, int places);
uint64_t fair_semaphore_used_ns(struct fair_semaphore *); // since init, summed over all places

struct decode_device {
    // Returns libavcodec's decoder that runs the codec on the device and gives the same bytes as
    // the cpu; NULL: none. Tests install other decoders.
    const AVCodec *(*find)(enum AVCodecID);
    // Prepares a context of such a decoder before it is opened. Returns 0 or -ENOMEM.
    int (*prepare)(AVCodecContext *, const struct decode_device *, int in_flight);
    AVBufferRef *context;
    struct fair_semaphore inside;  // limits libavcodec's calls that may call the driver
    struct fair_semaphore opening; // limits calls that open a decoder in the driver: one at a time
    int opening_places;            // places in `inside` that such a call takes
    _Atomic int turns;             // left for decoders that may begin: see nvdec_turn
    _Atomic(AVCodecContext *) abandoned; // by nvdec_abandon; the next is its `opaque`
};

// One decoder's use of the device: its context's `opaque`.
struct nvdec {
    struct decode_device *device;
    bool refused; // the device rejects the stream; set within a call, which then fails
    bool opens;   // the present call opens a decoder in the driver
    // Time that calls lasted while a decoder was opened, this one or another camera's: the driver
    // admits few others meanwhile. The second is fair_semaphore_used_ns(opening) before the call.
    int64_t held_up_ns;
    uint64_t opening_before_ns;
};

// A live camera's turn to have its decoder opened in the driver, which takes up to 80 ms and
// happens one at a time: its packets must be read until then. Zeroed: none.
struct nvdec_turn {
    struct decode_device *device; // where it has the turn; NULL: nowhere
};

// Returns true if the camera has the turn or gets it now. It lasts until nvdec_turn_end, which must
// follow soon: only a few have a turn at a time.
bool nvdec_turn_came(struct nvdec_turn *, struct decode_device *);
void nvdec_turn_end(struct nvdec_turn *); // accepts one without a turn

// Leaves the context of a decoder whose camera has another device to nvdec_close_abandoned: the
// driver takes up to 50 ms to close each, one after another. No frame of the decoder may be out.
void nvdec_abandon(struct decode_device *, AVCodecContext *);
// Closes one such context, and pauses for as long as that took, so that others can use the driver.
// Returns false if there is none. One thread at a time.
bool nvdec_close_abandoned(struct decode_device *);

// Call around each call of libavcodec that may call the driver. Do nothing without a device.
void nvdec_enter(struct nvdec *);
void nvdec_leave(struct nvdec *);

// Returns true if the codec's standard defines a picture's bytes exactly. The others, JPEG and the
// MPEGs before H.264 with their own transforms, would differ from the cpu.
bool nvdec_is_exact(enum AVCodecID);
// Returns libavcodec's own decoder of such a codec that uses this type of device, and the format of
// its pictures there; NULL: none.
const AVCodec *device_decoder(enum AVHWDeviceType, enum AVCodecID, enum AVPixelFormat *format);
const AVCodec *nvdec_find(enum AVCodecID); // the same on CUDA

#endif
