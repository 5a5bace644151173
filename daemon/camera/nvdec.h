// What decoding on the device takes: the hardware context that decode.h's decode_device is, and the
// set-up of a libavcodec decoder that uses it.
#ifndef FRAMED_DAEMON_CAMERA_NVDEC_H
#define FRAMED_DAEMON_CAMERA_NVDEC_H

#include <libavcodec/avcodec.h>
#include <stdbool.h>

struct decode_device;

// The decoder of libavcodec that hands the codec's work to NVDEC and gives the same bytes as the
// cpu; NULL: there is none.
const AVCodec *nvdec_codec(enum AVCodecID);

// Prepares a context of such a decoder, before it is opened. *refused, which outlives the context,
// becomes true when NVDEC does not take the stream; the packet then fails. Returns 0 or -ENOMEM.
int nvdec_prepare(AVCodecContext *, const struct decode_device *, int in_flight, bool *refused);

#endif
