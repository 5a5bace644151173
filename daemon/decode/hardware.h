// A hardware decoder of libavcodec, NVDEC apart: found by the name that the key `decode` takes,
// opened, and called on a thread of its own, which also copies its pictures to the host. If the
// driver gives no answer for 3 s, or for 0.5 s behind the first picture, the caller goes on without
// it. The thread, the decoder and one
// packet stay behind until the driver returns, and no decoder of that name and device is opened
// meanwhile. The owner's thread calls everything.
#ifndef FRAMED_DAEMON_DECODE_HARDWARE_H
#define FRAMED_DAEMON_DECODE_HARDWARE_H

#include <libavcodec/avcodec.h>
#include <libavutil/hwcontext.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/types.h"

struct buffers;
struct hardware;

enum { HARDWARE_NAME_MAX = DECODER_NAME_MAX + DECODER_DEVICE_MAX }; // bytes

// --- names

struct hardware_decoder {
    const AVCodec *codec;
    // libavcodec decodes with the device's help (vaapi, cuda), or the decoder is a library that can
    // be given a device (qsv). AV_HWDEVICE_TYPE_NONE: it finds its own (v4l2m2m, rkmpp).
    enum AVHWDeviceType device;
    // Of pictures on the device. AV_PIX_FMT_NONE: the decoder is a library with an order, a delay
    // and time stamps of its own.
    enum AVPixelFormat format;
};

// The decoder of that name for a codec: "vaapi", "v4l2m2m", "h264_v4l2m2m". -ENOTSUP: libavcodec
// has none, or the codec's standard does not define its pictures to the bit.
int hardware_find(struct hardware_decoder *ret, const char *name, enum AVCodecID);
// Whether some libavcodec has a decoder of that name.
bool hardware_is_known(const char *name);
// Those to try on any machine, up to a NULL.
const char *const *hardware_names(void);
// "cpu", "vaapi:/dev/dri/renderD128", as the key `decode` has it.
const char *hardware_name(const struct decoder_choice *, char to[HARDWARE_NAME_MAX]);

// --- a decoder

// Pictures come to lie in `buffers`. With `early` each is given out as soon as it is decoded
// (daemon/decode/early_output.h), unless the decoder is a library. 0; -ENOTSUP: hardware_find;
// -EBUSY: another camera's call of the driver lasts; -ENODEV: the device cannot be opened;
// -ETIMEDOUT: no answer; -ENOMEM. `why` says so: "Invalid argument".
int hardware_open(struct hardware **ret, const AVCodecParameters *, const struct decoder_choice *,
                  bool early, struct buffers *buffers, char *why, size_t size);
void hardware_close(struct hardware *); // accepts NULL

// As codec_send, codec_receive, codec_late and codec_flush. Any error but AVERROR_INVALIDDATA,
// AVERROR(EAGAIN) and AVERROR_EOF is the device's: another decoder is to decode the packet.
// AVERROR(ENOSYS): the device does not decode such streams.
int hardware_send(struct hardware *, const AVPacket *, int64_t serial, bool keyframes_only);
int hardware_receive(struct hardware *, AVFrame *);
int64_t hardware_late(struct hardware *);
void hardware_flush(struct hardware *);

// What the decoder knows of the stream. `to` is a context that is not open.
void hardware_describe(const struct hardware *, AVCodecContext *to);
// Explains an error of hardware_send or hardware_receive.
void hardware_why(const struct hardware *, int error, char *why, size_t size);
const char *hardware_driver(const struct hardware *); // its name and version; "": not known

#endif
