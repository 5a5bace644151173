// The decoded picture buffer (DPB) of a stream: the memory that libavcodec takes for its pictures.
#ifndef FRAMED_DAEMON_DECODE_DPB_H
#define FRAMED_DAEMON_DECODE_DPB_H

#include "config/config.h"
#include "kernels/image.h"

struct AVCodecContext;
struct AVCodecParameters;

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

#endif
