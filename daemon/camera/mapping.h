// What libav's pixel formats and colours are to us. Pure.
#ifndef FRAMED_DAEMON_CAMERA_MAPPING_H
#define FRAMED_DAEMON_CAMERA_MAPPING_H

#include <libavutil/pixfmt.h>

#include "kernels/image.h"

struct AVFrame;

// PIXEL_NONE: no kernel reads it.
enum pixel_format mapping_format(enum AVPixelFormat);

// Of a decoded frame whose samples are of `format`, once they have been `converted` to it.
struct colour mapping_colour(const struct AVFrame *, enum AVPixelFormat format, bool converted);

// yuvj420p and its like are yuv420p of full range: the format without the range.
enum AVPixelFormat mapping_without_range(enum AVPixelFormat);

#endif
