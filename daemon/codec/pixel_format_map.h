// Maps libav's pixel formats and colours to ours. Pure.
#ifndef FRAMED_DAEMON_CODEC_PIXEL_FORMAT_MAP_H
#define FRAMED_DAEMON_CODEC_PIXEL_FORMAT_MAP_H

#include <libavcodec/codec_id.h>
#include <libavutil/pixfmt.h>

#include "daemon/codec/frame.h"

struct AVFrame;

// Returns PIXEL_NONE if no kernel reads it.
enum pixel_format pixel_format_map_format(enum AVPixelFormat);

// Returns the nearest format that kernels read, to which libswscale converts pictures of `from`.
enum AVPixelFormat pixel_format_map_converted(enum AVPixelFormat from);

// Returns the colour of a decoded frame with samples of `format`; `converted`: after libswscale.
struct colour pixel_format_map_colour(const struct AVFrame *, enum AVPixelFormat format,
                                      bool converted);

// Returns the name of a frame's matrix that no kernel computes, so that another one is used; NULL:
// none. `format` is the format of the samples.
const char *pixel_format_map_other_matrix(const struct AVFrame *, enum AVPixelFormat format);

// Returns the format without the range: yuvj420p and its like are yuv420p of full range.
enum AVPixelFormat pixel_format_map_without_range(enum AVPixelFormat);

// Returns the field order of a picture of that codec.
enum field_order pixel_format_map_field_order(const struct AVFrame *, enum AVCodecID);

// Returns true if the transfer is an HDR one: PQ (smpte2084) or HLG (arib-std-b67).
bool pixel_format_map_is_hdr(const struct AVFrame *);

#endif
