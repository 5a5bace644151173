// Host memory for the pictures of one decoder: how much a stream takes, and the buffers themselves.
#ifndef FRAMED_DAEMON_CODEC_BUFFERS_H
#define FRAMED_DAEMON_CODEC_BUFFERS_H

#include <libavutil/pixfmt.h>

#include "config/config.h"
#include "kernels/backend.h"

struct AVCodecContext;
struct AVCodecParameters;
struct AVFrame;
struct buffers;
struct early_output;

// --- the decoded picture buffer (DPB) of a stream: the memory that libavcodec takes for its
// pictures

enum stream_codec dpb_codec(int codec_id); // `codec_id` is an enum AVCodecID

// Measures a decoder that has given out a picture. Leaves packet_bytes unchanged.
void dpb_measure(struct stream_memory *, const struct AVCodecContext *);

// Returns the bytes of one picture of the stream on the host, with libavcodec's padding. `source`
// gives the layout.
size_t dpb_picture_bytes(const struct stream_memory *, const struct image *source);
// Returns the host memory of a decoder on the cpu without its packets: the pictures it keeps, one
// for each thread, `in_flight` that are out, and its tables of macroblocks.
size_t dpb_bytes(const struct stream_memory *, const struct image *source, int threads,
                 int in_flight);

// Returns the mean packet size by the stream's bit rate at num / den pictures/s; 0: unknown.
int dpb_packet_bytes(const struct AVCodecParameters *, int num, int den);

// --- buffers: whole pages, pinned by the backend that reads them, and reused until the geometry
// changes. Any thread gets and frees buffers; join, leave and close are the owner's.

// Memory limits of a decoder on the cpu: its plan, and the reserve for more than that. `memory`
// NULL: no limit.
struct memory_share {
    struct memory_reserve *memory; // outlives the buffers
    size_t planned;                // bytes of this decoder in the plan
    int threads, in_flight;        // see dpb_bytes
};

int buffers_open(struct buffers **ret, const struct memory_share *); // NULL: no limit
void buffers_close(struct buffers *); // frames in use stay valid; accepts NULL

// Pins all buffers, present and future, until buffers_leave unpins all, in use or not.
void buffers_join(struct buffers *, const struct backend_driver *, struct backend *);
void buffers_leave(struct buffers *);
void buffers_trim(struct buffers *); // frees idle buffers, and memory taken from the reserve

// Makes the context allocate its pictures here, except in formats that no kernel reads and for
// decoders that allocate their own. Uses the context's `opaque`. Reports each picture to the early
// output, which may be NULL and outlives the context.
void buffers_serve(struct buffers *, struct AVCodecContext *, struct early_output *);
// Returns true if libavcodec made up references for this picture of H.265, which it has just given
// out.
bool buffers_stood_in(const struct buffers *, const struct AVFrame *);
// True while the pictures do not fit and the decoder gets no memory. A keyframe tries again.
bool buffers_refused(const struct buffers *);
// Writes a sentence about the refusal, once per size; otherwise an empty text.
void buffers_refusal(struct buffers *, char *text, size_t size);
// Allocates an empty frame for such a picture. Returns 0 or an AVERROR.
int buffers_fill(struct buffers *, struct AVFrame *, enum AVPixelFormat, int width, int height);
// The same for a decoder that is not served: all buffers count against plan and reserve.
int buffers_keep(struct buffers *, struct AVFrame *, enum AVPixelFormat, int width, int height);
// Returns MEMORY_PINNED or MEMORY_HOST, for any frame on the host.
enum memory buffers_memory(struct buffers *, const struct AVFrame *);

#endif
