// What libav's pixel formats and colours are to us. Pure.
#ifndef FRAMED_DAEMON_DECODE_PIXEL_FORMAT_MAP_H
#define FRAMED_DAEMON_DECODE_PIXEL_FORMAT_MAP_H

#include <libavcodec/codec_id.h>
#include <libavutil/pixfmt.h>

#include "daemon/decode/frame.h"

struct AVFrame;

// PIXEL_NONE: no kernel reads it.
enum pixel_format pixel_format_map_format(enum AVPixelFormat);

// The nearest format that kernels read: libswscale converts pictures of `from` to it.
enum AVPixelFormat pixel_format_map_converted(enum AVPixelFormat from);

// Of a decoded frame whose samples are of `format`, once they have been `converted` to it.
struct colour pixel_format_map_colour(const struct AVFrame *, enum AVPixelFormat format,
                                      bool converted);

// Returns the name of a matrix that no kernel computes and that is therefore read as another one,
// of a frame whose samples are of `format`; NULL: there is none.
const char *pixel_format_map_other_matrix(const struct AVFrame *, enum AVPixelFormat format);

// yuvj420p and its like are yuv420p of full range: the format without the range.
enum AVPixelFormat pixel_format_map_without_range(enum AVPixelFormat);

// Of a picture that such a codec gave.
enum field_order pixel_format_map_field_order(const struct AVFrame *, enum AVCodecID);

// Whether the transfer is one of HDR: PQ (smpte2084) or HLG (arib-std-b67).
bool pixel_format_map_is_hdr(const struct AVFrame *);

#endif
