// The hardware decoders of libavcodec by the names that the key `decode` takes. Pure.
#ifndef FRAMED_DAEMON_DECODE_HARDWARE_DECODER_H
#define FRAMED_DAEMON_DECODE_HARDWARE_DECODER_H

#include <libavcodec/avcodec.h>
#include <libavutil/hwcontext.h>
#include <stdbool.h>

struct hardware_decoder {
    const AVCodec *codec;
    // The kind of device that libavcodec hands the codec's work to (vaapi, cuda), or that a decoder
    // which is a library of its own can be given (qsv). AV_HWDEVICE_TYPE_NONE: it finds its own
    // (v4l2m2m, rkmpp).
    enum AVHWDeviceType device;
    // Of pictures on the device; AV_PIX_FMT_NONE: the decoder is a library of its own, whose order,
    // delay and time stamps are its own, too.
    enum AVPixelFormat format;
};

// The decoder of that name for a codec: "vaapi", "v4l2m2m", "h264_v4l2m2m". -ENOTSUP: libavcodec
// has none, or the codec is one whose pictures its standard does not define to the bit.
int hardware_decoder_find(struct hardware_decoder *ret, const char *name, enum AVCodecID);
// Whether the name means something here, or with another libavcodec: those that the help names.
bool hardware_decoder_is_known(const char *name);
// Those that are worth a try on any box, up to a NULL: the help's, and cuda.
const char *const *hardware_decoder_names(void);

enum AVCodecID hardware_decoder_codec(const char *name); // as libavcodec calls it
const char *hardware_decoder_version(void);              // of FFmpeg, as its package has it

#endif
