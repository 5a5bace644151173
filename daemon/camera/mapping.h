// What libav's pixel formats and colours are to us. Pure.
#ifndef FRAMED_DAEMON_CAMERA_MAPPING_H
#define FRAMED_DAEMON_CAMERA_MAPPING_H

#include <libavcodec/codec_id.h>
#include <libavutil/pixfmt.h>

#include "daemon/frame.h"

struct AVFrame;

// PIXEL_NONE: no kernel reads it.
enum pixel_format mapping_format(enum AVPixelFormat);

// Of a decoded frame whose samples are of `format`, once they have been `converted` to it.
struct colour mapping_colour(const struct AVFrame *, enum AVPixelFormat format, bool converted);

// yuvj420p and its like are yuv420p of full range: the format without the range.
enum AVPixelFormat mapping_without_range(enum AVPixelFormat);

// Of a picture that such a codec gave.
enum field_order mapping_field_order(const struct AVFrame *, enum AVCodecID);

// Whether the transfer is one of HDR: PQ (smpte2084) or HLG (arib-std-b67).
bool mapping_is_hdr(const struct AVFrame *);

#endif
