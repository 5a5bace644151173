// A hardware decoder as libavcodec has it: opened on its device, fed with packets, its pictures
// copied to the host. Its calls last for as long as the driver likes:
// daemon/decode/hardware_codec.h makes them on a thread of its own. One thread uses a context.
#ifndef FRAMED_DAEMON_DECODE_HARDWARE_CONTEXT_H
#define FRAMED_DAEMON_DECODE_HARDWARE_CONTEXT_H

#include "config/types.h"
#include "daemon/decode/hardware_decoder.h"

struct early_output;

enum {
    HARDWARE_READY_MAX = 32, // pictures on the host that nobody has asked for
    HARDWARE_STAMPS = 512,   // packets whose time stamps are known
};

// Set up by the owner up to `early`, else zeroed; not moved while it is open.
struct hardware_context {
    struct hardware_decoder decoder;
    struct decoder_choice choice;
    // Gives a frame memory for such a picture: 0 or negative AVERROR.
    int (*keep)(void *opaque, AVFrame *, enum AVPixelFormat, int width, int height);
    void *opaque;
    struct early_output *early; // NULL: the order and the time of output are libavcodec's; owned
    AVCodecContext *context;    // NULL: not open
    bool refused;               // the device does not take the stream
    AVFrame *ready[HARDWARE_READY_MAX]; // pictures on the host, in their order
    int n_ready;
    bool ended;      // all pictures came
    int64_t copy_ns; // that copies took so far
    int copies;
    struct hardware_stamp { // of a packet
        int64_t serial, pts, duration;
        bool keyframe;
    } stamps[HARDWARE_STAMPS];
};

// All return 0 or negative AVERROR; what is AVERROR_INVALIDDATA is the stream's fault.
int hardware_context_open(struct hardware_context *, const AVCodecParameters *);
// Sends the packet, whose time stamps it may replace, or NULL at the end, and takes the pictures
// that there are. libav_serial() of the packet's picture is `serial`, above 0. AVERROR(ENOSYS): the
// device refuses the stream; AVERROR(ETIMEDOUT): it has not taken the packet for `full_ns`.
int hardware_context_send(struct hardware_context *, AVPacket *, int64_t serial,
                          bool keyframes_only, int64_t full_ns);
int hardware_context_take(struct hardware_context *); // pictures, as far as there is room
void hardware_context_flush(struct hardware_context *);
void hardware_context_close(struct hardware_context *); // accepts a closed one

#endif
