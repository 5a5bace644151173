// Brings pictures to a format that kernels read, by libswscale, where libavcodec yields another.
// Levels, matrix and range stay as they are. One thread uses a scaler; zeroed it is ready.
#ifndef FRAMED_DAEMON_CAMERA_SCALER_H
#define FRAMED_DAEMON_CAMERA_SCALER_H

#include <libavutil/pixfmt.h>

struct AVFrame;
struct SwsContext;

struct scaler {
    struct SwsContext *sws; // for pictures of this format and size; NULL before the first
    int format, width, height;
};

// Fills `to`, whose buffer it makes or uses again. Chroma of 4:4:4 comes out left-sited. Returns 0;
// -ENOTSUP: libswscale does not read the format; other negative AVERROR.
int scaler_convert(struct scaler *, struct AVFrame *to, const struct AVFrame *from);
void scaler_close(struct scaler *);

// Makes the frame's buffer, unless it has one of that format and size already. 0 or negative
// AVERROR.
int frame_keep_buffer(struct AVFrame *, enum AVPixelFormat, int width, int height);

// yuvj420p and its like are yuv420p of full range: the format without the range.
enum AVPixelFormat format_without_range(enum AVPixelFormat);

#endif
