// One decoder of libavcodec, on the cpu, on NVDEC or on other hardware: opening it and calling it.
// The owner's thread calls everything.
#ifndef FRAMED_DAEMON_CODEC_CODEC_H
#define FRAMED_DAEMON_CODEC_CODEC_H

#include "daemon/codec/nvdec.h"

struct buffers;
struct decode_options;
struct decoder_choice;
struct early_output;
struct frame;
struct hardware;
struct packet_facts;
struct picture;
struct pictures;

struct codec { // not moved while it is open
    // NULL: not open. With other hardware it only describes the stream and does not decode.
    AVCodecContext *context;
    struct hardware *hardware; // NULL: we call libavcodec directly
    struct nvdec nvdec;        // its device is NULL on the cpu
    struct pictures *pictures;
    struct early_output *early; // NULL: libavcodec decides the order and the time of output
    bool keyframes_only;        // only keyframes are sent: each is shown at once
    bool draining;              // the end was sent
    // H.264 on a device:
    AVPacket *idr;  // the last one; NULL: none yet
    bool unflushed; // libavcodec still holds pictures that must be dropped
    int pushes;     // times that idr was sent again
    int64_t first;  // serial of the first picture to give out
};

// Opens a closed codec: on `device`, or if NULL on the cpu with its pictures in `buffers`. Pictures
// released to `pictures` return to the device with the next call that goes there anyway. Returns 0,
// -ENOMEM or -ENOTSUP.
int codec_open(struct codec *, const AVCodecParameters *, const struct decode_options *,
               struct decode_device *device, struct buffers *buffers, struct pictures *pictures);
// The same on other hardware. Pictures are copied to `buffers`. Errors as hardware_open.
int codec_open_hardware(struct codec *, const AVCodecParameters *, const struct decode_options *,
                        const struct decoder_choice *, struct buffers *buffers,
                        struct pictures *pictures, char *why, size_t size);
void codec_close(struct codec *); // accepts a closed one
// The same without waiting for the device. All its pictures must have been released.
void codec_abandon(struct codec *);

bool codec_on_device(const struct codec *); // NVDEC or other hardware
bool codec_on_nvdec(const struct codec *);
// Sends a packet; the serial in its facts is the libav_serial() of its picture. NULL, NULL is the
// end. Returns 0 or a negative AVERROR.
int codec_send(struct codec *, const AVPacket *, const struct packet_facts *);
int codec_receive(struct codec *, AVFrame *); // as avcodec_receive_frame
// Returns the serial of a decoded picture that came too late to be shown, once; 0: none.
int64_t codec_late(struct codec *);
int codec_map(struct codec *, struct picture *, bool keep_on_device, struct frame *ret,
              const char **converted); // as picture_map
// Drops its pictures and continues with packet `first`; stays open, also on the device.
void codec_flush(struct codec *, int64_t first);
// Returns true if an error is the device's rather than the stream's.
bool codec_failed(const struct codec *, int error);

#endif
