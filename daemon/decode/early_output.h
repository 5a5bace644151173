// Pictures of a live camera as soon as they are decoded. libavcodec decodes a packet of H.264 or
// H.265 when it gets it, but gives the picture out when no other can come ahead of it by the
// stream's word alone, up to 16 packets later. By then the picture's buffer holds what will be
// given out: here it is taken from there, and shown when output_order says so. What libavcodec
// gives out later is dropped, but for pictures that could not be taken. Where the buffer does not
// hold the picture, libavcodec is made to give each picture out when it is decoded
// (daemon/decode/held_pictures.h). With frame threads there is none of this. One thread, that of
// the codec, uses an early output.
#ifndef FRAMED_DAEMON_DECODE_EARLY_OUTPUT_H
#define FRAMED_DAEMON_DECODE_EARLY_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

struct AVCodecContext;
struct AVCodecParameters;
struct AVFrame;
struct AVPacket;
struct early_output;

// -ENOTSUP: pictures of this codec are given out at once; -ENOMEM.
int early_output_open(struct early_output **ret, const struct AVCodecParameters *);
// The pictures of the context, which is not open yet, are whole only when it gives them out.
// Returns 0 or -ENOMEM.
int early_output_follow(struct early_output *, struct AVCodecContext *);
void early_output_close(struct early_output *); // accepts NULL
void early_output_begin(struct early_output *); // another stream, or another place in it
// To be called in get_buffer2 for a frame that has got its memory; accepts NULL. Contexts that are
// followed need not call it.
void early_output_handed(struct early_output *, struct AVFrame *);
// Sends a packet, the serial of whose picture is `serial`, to the context. Each picture is shown at
// once where it gets keyframes alone. Returns as avcodec_send_packet.
int early_output_send(struct early_output *, struct AVCodecContext *, const struct AVPacket *,
                      int64_t serial, bool keyframes_only);
// Whether a frame that the context gave out is to be shown now. If not, it becomes empty.
bool early_output_wants(struct early_output *, struct AVFrame *);
// No more packets will come.
void early_output_end(struct early_output *, struct AVCodecContext *);
// Moves the next picture that is to be shown to an empty frame. False: there is none.
bool early_output_next(struct early_output *, struct AVFrame *);
// A picture that came too late to be shown, of those not asked for yet; 0: none.
int64_t early_output_late(struct early_output *);

#endif
