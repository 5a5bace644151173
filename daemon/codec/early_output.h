// Gives out pictures of a live camera as soon as they are decoded. libavcodec decodes a packet of
// H.264 or H.265 when it is sent, but gives the picture out only when the stream guarantees that no
// other comes ahead of it, up to 16 packets later. Here it is made to give out each picture at
// once, and output_order decides when the picture is shown. In H.264 an end of sequence makes
// libavcodec give out its next held picture, and changes nothing else. In H.265 the number of
// reordered pictures is set to 0 in the SPS; it does not affect decoding. Frame threads rule all of
// this out. Only the codec's thread uses it.
#ifndef FRAMED_DAEMON_CODEC_EARLY_OUTPUT_H
#define FRAMED_DAEMON_CODEC_EARLY_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

struct AVCodecContext;
struct AVFrame;
struct AVPacket;
struct early_output;
struct packet_facts;

// Takes the parameters of a context that is not open yet, and may edit its extradata. -ENOTSUP:
// this codec's pictures are given out at once anyway; -ENOMEM.
int early_output_open(struct early_output **ret, struct AVCodecContext *);
void early_output_close(struct early_output *); // accepts NULL
void early_output_begin(struct early_output *); // another stream, or another place in it
// Sends a packet to the context and takes the pictures that it gives out. With only keyframes, each
// picture is shown at once. Returns 0 or a negative AVERROR.
int early_output_send(struct early_output *, struct AVCodecContext *, const struct AVPacket *,
                      const struct packet_facts *, bool keyframes_only);
// Call when no more packets will come. With `drains` the context gets the end, too, and must be
// flushed before it can continue. Returns the same.
int early_output_end(struct early_output *, struct AVCodecContext *, bool drains);
// Moves the next picture to show into a frame, which it empties first. One that came too late to be
// shown has AV_FRAME_FLAG_DISCARD. Returns false if there is none.
bool early_output_next(struct early_output *, struct AVFrame *);

#endif
