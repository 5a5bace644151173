// Host memory for the pictures of one decoder: whole pages, pinned by the backend that reads them,
// made once a geometry and used again and again. Any thread gets and gives back; join, leave and
// close are the owner's.
#ifndef FRAMED_DAEMON_DECODE_BUFFERS_H
#define FRAMED_DAEMON_DECODE_BUFFERS_H

#include <libavcodec/codec_id.h>
#include <libavutil/pixfmt.h>

#include "kernels/backend.h"

struct AVCodecContext;
struct AVFrame;
struct buffers;
struct early_output;

// What pictures of a decoder on the cpu may take beyond the plan. `memory` NULL: without a limit.
struct memory_share {
    struct memory_reserve *memory; // outlives the buffers
    size_t planned;                // bytes that the plan has for this decoder
    int threads, in_flight;        // see dpb_bytes
};

int buffers_open(struct buffers **ret, const struct memory_share *); // NULL: without a limit
void buffers_close(struct buffers *); // frames that are out stay valid; accepts NULL

// Pins all there is and all that will be, until buffers_leave, which unpins it, whoever has it.
void buffers_join(struct buffers *, const struct backend_driver *, struct backend *);
void buffers_leave(struct buffers *);
void buffers_trim(struct buffers *); // lets go of what nobody uses

// From now on the decoder's pictures lie here, those apart that no kernel reads and those that
// libavcodec or a library behind it has memory of its own for. Takes the context's `opaque`. The
// early output, which may be NULL, is told of each; it outlives the context.
void buffers_serve(struct buffers *, struct AVCodecContext *, struct early_output *);
// Returns whether libavcodec had to make up pictures that one of H.265, which it has just given
// out, refers to.
bool buffers_stood_in(struct buffers *, const struct AVFrame *);
// Makes the first buffer for pictures of this size, as the decoder counts it, in a thread of its
// own: the first picture need not wait for pages. Where others come, it is given up.
void buffers_prepare(struct buffers *, enum AVCodecID, enum AVPixelFormat, int width, int height);
// The decoder is through with a packet: that thread makes the next picture's buffer, up to four.
void buffers_decoded(struct buffers *);
// True while the pictures do not fit: the decoder gets no memory for them. A keyframe tries again.
bool buffers_refused(struct buffers *);
// A sentence on that, once for each size; else an empty text.
void buffers_refusal(struct buffers *, char *text, size_t size);
// Gives a frame memory for such a picture, unless it has it already. 0 or negative AVERROR.
int buffers_keep(struct buffers *, struct AVFrame *, enum AVPixelFormat, int width, int height);
// MEMORY_PINNED or MEMORY_HOST, of a frame on the host from anywhere.
enum memory buffers_memory(struct buffers *, const struct AVFrame *);

#endif
