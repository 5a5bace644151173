// Decoding on the device: what struct decode_device is, and the set-up of a libavcodec decoder that
// uses it.
#ifndef FRAMED_DAEMON_DECODE_NVDEC_H
#define FRAMED_DAEMON_DECODE_NVDEC_H

#include <libavcodec/avcodec.h>
#include <stdbool.h>

#include "daemon/base/fair_semaphore.h"

struct decode_device {
    // The decoder of libavcodec that hands the codec's work to the device and gives the same bytes
    // as the cpu; NULL: there is none. Tests put other decoders there.
    const AVCodec *(*find)(enum AVCodecID);
    // Prepares a context of such a decoder, before it is opened. 0 or -ENOMEM.
    int (*prepare)(AVCodecContext *, const struct decode_device *, int in_flight);
    AVBufferRef *context;
    struct fair_semaphore inside;  // libavcodec's calls that the driver may be called from
    struct fair_semaphore opening; // those that open a decoder in the driver: one at a time
    int opening_places;            // that one of those takes inside
    struct fair_semaphore turns;   // decoders that may begin, see nvdec_turn_came
    pthread_mutex_t lock;          // guards, for nvdec_abandon:
    struct abandoned *abandoned;
    bool closes; // a thread closes them, and then:
    pthread_cond_t closed;
};

// One decoder's use of the device: its context's `opaque`.
struct nvdec {
    struct decode_device *device;
    bool refused; // the device does not take the stream; set within a call, which then fails
    bool opens;   // the call at hand opens a decoder in the driver
    // How long calls lasted while some decoder was opened, the own one or another camera's: the
    // driver lets few others in meanwhile. And what fair_semaphore_used_ns(opening) was before the
    // call.
    int64_t held_up_ns;
    uint64_t opening_before_ns;
};

// A live camera's turn to have its decoder opened in the driver, which takes up to 80 ms and goes
// one after another: its packets must be read until then. Zeroed: it is in no line.
struct nvdec_turn {
    struct decode_device *device; // whose line it is in; NULL: none
    struct fair_semaphore_waiter place;
};

// Joins the line, and tells whether the turn has come. It stays so until nvdec_turn_end, which is
// to follow soon: only a few have a turn at a time.
bool nvdec_turn_came(struct nvdec_turn *, struct decode_device *);
void nvdec_turn_end(struct nvdec_turn *); // or leaves the line; accepts one in none

// Closes the context of a decoder whose camera has another device, some time before this device is
// closed: the driver takes up to 50 ms for each, one after another. No frame of the decoder is out.
// Takes the context over; closes it at once where there is no thread for that.
void nvdec_abandon(struct decode_device *, AVCodecContext *);
void nvdec_wait_for_abandoned(struct decode_device *);

// Around each call of libavcodec that may call the driver.
void nvdec_enter(struct nvdec *);
void nvdec_leave(struct nvdec *);

// Whether the codec's standard leaves no choice in a picture's bytes. The others, JPEG and the
// MPEGs before H.264 with their own transforms, would not come out as on the cpu.
bool nvdec_is_exact(enum AVCodecID);
const AVCodec *nvdec_find(enum AVCodecID);

#endif
