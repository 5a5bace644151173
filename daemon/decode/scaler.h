// Converts pictures to a format that kernels read, by libswscale, if libavcodec returns another.
// Levels, matrix and range stay the same. One thread uses a scaler; zeroed, it is ready.
#ifndef FRAMED_DAEMON_DECODE_SCALER_H
#define FRAMED_DAEMON_DECODE_SCALER_H

#include <libavutil/pixfmt.h>

struct AVFrame;
struct buffers;
struct SwsContext;

struct scaler {
    struct SwsContext *sws; // for pictures of this format and size; NULL before the first
    int format, width, height;
};

// Fills `to`, in memory of `buffers` unless it has its own. Chroma of 4:4:4 comes out left-sited.
// Returns 0; -ENOTSUP: libswscale does not read the format; another negative AVERROR.
int scaler_convert(struct scaler *, struct buffers *, struct AVFrame *to,
                   const struct AVFrame *from);
void scaler_close(struct scaler *);

#endif
