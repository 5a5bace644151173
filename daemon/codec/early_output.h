// Gives out pictures of a live camera as soon as they are decoded. libavcodec decodes a packet of
// H.264 or H.265 when it is sent, but gives the picture out only when the stream guarantees that no
// other comes ahead of it, up to 16 packets later. The picture's buffer is complete before that:
// here the picture is taken from the buffer, and shown when output_order allows. Later output of
// libavcodec is dropped, except pictures that could not be taken. If the buffer does not hold the
// picture, libavcodec is made to give out each picture when it is decoded (struct followed). Frame
// threads rule all of this out. Only the codec's thread uses it.
#ifndef FRAMED_DAEMON_CODEC_EARLY_OUTPUT_H
#define FRAMED_DAEMON_CODEC_EARLY_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

struct AVCodecContext;
struct AVCodecParameters;
struct AVFrame;
struct AVPacket;
struct early_output;
struct packet_facts;

// -ENOTSUP: this codec's pictures are given out at once anyway; -ENOMEM.
int early_output_open(struct early_output **ret, const struct AVCodecParameters *);
// Follows a context, not open yet, whose pictures are complete only when it gives them out. Returns
// 0 or -ENOMEM.
int early_output_follow(struct early_output *, struct AVCodecContext *);
void early_output_close(struct early_output *); // accepts NULL
void early_output_begin(struct early_output *); // another stream, or another place in it
// Call in get_buffer2 for a frame that has its memory; accepts NULL. Not needed for followed
// contexts.
void early_output_handed(struct early_output *, struct AVFrame *);
// Sends a packet to the context. With only keyframes, each picture is shown at once. Returns as
// avcodec_send_packet.
int early_output_send(struct early_output *, struct AVCodecContext *, const struct AVPacket *,
                      const struct packet_facts *, bool keyframes_only);
// Returns true if a frame that the context gave out must be shown now. Otherwise empties it.
bool early_output_wants(struct early_output *, struct AVFrame *);
// Call when no more packets will come.
void early_output_end(struct early_output *, struct AVCodecContext *);
// Moves the next picture to show into an empty frame. Returns false if there is none.
bool early_output_next(struct early_output *, struct AVFrame *);
// Returns a picture that came too late to be shown, each once; 0: none.
int64_t early_output_late(struct early_output *);

#endif
