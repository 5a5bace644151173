// One decoder of libavcodec, on the cpu, on NVDEC or on other hardware: how it is opened, and how
// it is called. The owner's thread calls everything.
#ifndef FRAMED_DAEMON_DECODE_CODEC_H
#define FRAMED_DAEMON_DECODE_CODEC_H

#include "daemon/decode/nvdec.h"

struct buffers;
struct decode_options;
struct decoder_choice;
struct early_output;
struct frame;
struct hardware;
struct picture;
struct pictures;

struct codec { // not moved while it is open
    // NULL: not open. Of other hardware it only says what the stream is, and decodes nothing.
    AVCodecContext *context;
    struct hardware *hardware; // NULL: libavcodec is called here
    struct nvdec nvdec;        // its device is NULL on the cpu
    struct pictures *pictures;
    struct early_output *early; // NULL: the order and the time of output are libavcodec's
    bool keyframes_only;        // nothing else is sent: each is shown at once
    bool draining;              // has got the end
    // H.264 on a device:
    AVPacket *idr;  // the last one; NULL: none yet
    bool unflushed; // still holds what is to be forgotten
    int pushes;     // that idr was sent again
    int64_t first;  // serial from which on pictures are wanted
};

// Of a closed one. With `device` NULL on the cpu, pictures in `buffers`. What is released of
// `pictures` is given back to the device with the next call that goes there anyway. 0, -ENOMEM or
// -ENOTSUP.
int codec_open(struct codec *, const AVCodecParameters *, const struct decode_options *,
               struct decode_device *device, struct buffers *buffers, struct pictures *pictures);
// The same on other hardware, whose pictures are copied to `buffers`. Errors as hardware_open.
int codec_open_hardware(struct codec *, const AVCodecParameters *, const struct decode_options *,
                        const struct decoder_choice *, struct buffers *buffers,
                        struct pictures *pictures, char *why, size_t size);
void codec_close(struct codec *); // accepts a closed one
// The same without waiting for the device; all its pictures were released.
void codec_abandon(struct codec *);

bool codec_on_device(const struct codec *); // NVDEC or other hardware
bool codec_on_nvdec(const struct codec *);
// Whether a keyframe comes out in its place where only keyframes are sent: libavcodec's order of
// H.264 needs all that others are made from between two that are no IDR pictures.
bool codec_orders(const struct codec *, const AVPacket *keyframe);
// libav_serial() of the packet's picture is `serial`, above 0; NULL is the end. Returns 0 or
// negative AVERROR.
int codec_send(struct codec *, const AVPacket *, int64_t serial);
int codec_receive(struct codec *, AVFrame *); // as avcodec_receive_frame
// The serial of a picture that was decoded and came too late to be shown, once; 0: none.
int64_t codec_late(struct codec *);
int codec_map(struct codec *, struct picture *, bool keep_on_device, struct frame *ret,
              const char **converted); // as picture_map
// Forgets what it holds, and goes on with packet `first`; stays open, also on the device.
void codec_flush(struct codec *, int64_t first);
// Whether an error is the device's rather than the stream's.
bool codec_failed(const struct codec *, int error);

#endif
