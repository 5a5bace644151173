// A hardware decoder of libavcodec, other than NVDEC: found by its name in the key `decode`,
// opened, and called on its own thread, which also copies its pictures to the host. If the driver
// does not answer for 3 s, or for 0.5 s after the first picture, the caller continues without it.
// The thread, the decoder and one packet stay behind until the driver returns. Until then no
// decoder of that name and device is opened. The owner's thread calls everything.
#ifndef FRAMED_DAEMON_CODEC_HARDWARE_H
#define FRAMED_DAEMON_CODEC_HARDWARE_H

#include <libavcodec/avcodec.h>
#include <libavutil/hwcontext.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/types.h"

struct buffers;
struct hardware;
struct packet_facts;

enum { HARDWARE_NAME_MAX = DECODER_NAME_MAX + DECODER_DEVICE_MAX }; // bytes

// --- names

struct hardware_decoder {
    const AVCodec *codec;
    // The decoder uses this device (vaapi, cuda), or is a library that accepts one (qsv).
    // AV_HWDEVICE_TYPE_NONE: it finds its own (v4l2m2m, rkmpp).
    enum AVHWDeviceType device;
    // The format of pictures on the device. AV_PIX_FMT_NONE: the decoder is a library with its own
    // order, delay and time stamps.
    enum AVPixelFormat format;
};

// Finds the decoder of that name for a codec: "vaapi", "v4l2m2m", "h264_v4l2m2m". -ENOTSUP:
// libavcodec has none, or the codec's standard does not define its pictures to the bit.
int hardware_find(struct hardware_decoder *ret, const char *name, enum AVCodecID);
// Returns true if any libavcodec has a decoder of that name.
bool hardware_is_known(const char *name);
// Returns the names to try on any machine, ending with NULL.
const char *const *hardware_names(void);
// Writes a choice as in the key `decode`: "cpu", "vaapi:/dev/dri/renderD128".
const char *hardware_name(const struct decoder_choice *, char to[HARDWARE_NAME_MAX]);

// --- a decoder

// Copies pictures to `buffers`. With `early` each is given out as soon as it is decoded
// (daemon/codec/early_output.h), unless the decoder is a library. Returns 0; -ENOTSUP: as
// hardware_find; -EBUSY: a driver call of another camera has not returned; -ENODEV: the device
// cannot be opened; -ETIMEDOUT: no answer; -ENOMEM. `why` gets the reason: "Invalid argument".
int hardware_open(struct hardware **ret, const AVCodecParameters *, const struct decoder_choice *,
                  bool early, struct buffers *buffers, char *why, size_t size);
void hardware_close(struct hardware *); // accepts NULL

// As codec_send, codec_receive, codec_late and codec_flush. Errors other than AVERROR_INVALIDDATA,
// AVERROR(EAGAIN) and AVERROR_EOF are the device's: another decoder must decode the packet.
// AVERROR(ENOSYS): the device does not support the stream.
int hardware_send(struct hardware *, const AVPacket *, const struct packet_facts *,
                  bool keyframes_only);
int hardware_receive(struct hardware *, AVFrame *);
int64_t hardware_late(struct hardware *);
void hardware_flush(struct hardware *);

// Copies the decoder's stream properties to `to`, a context that is not open.
void hardware_describe(const struct hardware *, AVCodecContext *to);
// Explains an error of hardware_send or hardware_receive.
void hardware_why(const struct hardware *, int error, char *why, size_t size);
const char *hardware_driver(const struct hardware *); // name and version; "": unknown

#endif
