// The decoded picture buffer (DPB) of a stream: what memory libavcodec takes for its pictures.
#ifndef FRAMED_DAEMON_DECODE_DPB_H
#define FRAMED_DAEMON_DECODE_DPB_H

#include "config/config.h"
#include "kernels/image.h"

struct AVCodecContext;
struct AVCodecParameters;

enum stream_codec dpb_codec(int codec_id); // of an enum AVCodecID

// Of a decoder that has given out a picture, except for packet_bytes, which stays as it is.
void dpb_measure(struct stream_memory *, const struct AVCodecContext *);

// Bytes of such a stream's picture on the host, with the padding for libavcodec. `source` says the
// layout.
size_t dpb_picture_bytes(const struct stream_memory *, const struct image *source);
// Host memory of a decoder on the cpu without its packets: the pictures it keeps, one for each of
// its threads and `in_flight` for those that are out, and its tables of macroblocks.
size_t dpb_bytes(const struct stream_memory *, const struct image *source, int threads,
                 int in_flight);

// Of a mean packet by the stream's bit rate at num / den pictures a second; 0: not known.
int dpb_packet_bytes(const struct AVCodecParameters *, int num, int den);

#endif
