// A hardware decoder of libavcodec on a thread of its own, which also copies its pictures to the
// host: a driver that does not come back costs its caller no more than half a second. The owner's
// thread calls everything.
#ifndef FRAMED_DAEMON_DECODE_HARDWARE_CODEC_H
#define FRAMED_DAEMON_DECODE_HARDWARE_CODEC_H

#include <libavcodec/avcodec.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/types.h"

struct buffers;
struct hardware_codec;

// Pictures come to lie in `buffers`. With `early` each is given out as soon as it is decoded
// (daemon/decode/early_output.h), where the decoder tells libavcodec of it. Waits for the device,
// for 3 s at most. 0; -ENOTSUP: libavcodec has no such decoder for this codec; -ENOMEM; -ENODEV:
// the device cannot be opened; -ETIMEDOUT: nor does it come back. `why` says so: "Invalid
// argument".
int hardware_codec_open(struct hardware_codec **ret, const AVCodecParameters *,
                        const struct decoder_choice *, bool early, struct buffers *buffers,
                        char *why, size_t size);
// Where the driver does not come back its thread, its decoder and one packet stay behind until it
// does. Accepts NULL.
void hardware_codec_close(struct hardware_codec *);

// As codec_send, codec_receive, codec_late and codec_flush. Any error but AVERROR_INVALIDDATA,
// AVERROR(EAGAIN) and AVERROR_EOF is the device's: what it was given is to be decoded by another
// decoder. AVERROR(ETIMEDOUT): a call of the driver lasts, or packets bring no pictures.
int hardware_codec_send(struct hardware_codec *, const AVPacket *, int64_t serial,
                        bool keyframes_only);
int hardware_codec_receive(struct hardware_codec *, AVFrame *);
int64_t hardware_codec_late(struct hardware_codec *);
void hardware_codec_flush(struct hardware_codec *);

// What the stream says of itself, by the decoder's last word. `to` is a context that is not open.
void hardware_codec_describe(const struct hardware_codec *, AVCodecContext *to);
bool hardware_codec_hangs(const struct hardware_codec *);   // a call of the driver lasts
bool hardware_codec_refuses(const struct hardware_codec *); // the device decodes no such stream
const char *
hardware_codec_driver(const struct hardware_codec *); // as it calls itself; "": not known
// How long copies to the host took so far, and how many they were.
int64_t hardware_codec_copy_ns(const struct hardware_codec *, int *pictures);

#endif
