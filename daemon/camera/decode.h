// Pictures of one camera, by libavcodec: on the CPU, or by NVDEC where the frames stay on the
// device. What no kernel reads is converted by libswscale to a format that one does. One thread
// (the camera's) uses a decoder; frames may be released on any.
#ifndef FRAMED_DAEMON_CAMERA_DECODE_H
#define FRAMED_DAEMON_CAMERA_DECODE_H

#include "config/config.h"
#include "daemon/camera/ingest.h"
#include "daemon/frame.h"

struct decoder;

// The one hardware context of the process, shared by all decoders; wraps the device's primary CUDA
// context. NULL in *ret and -ENODEV where there is none.
struct decode_device;
int decode_device_open(struct decode_device **ret, int ordinal);
void decode_device_close(struct decode_device *); // accepts NULL; after every decoder and frame

struct decode_options {
    enum decode decode;
    int threads;    // of the cpu decoder; 0: one per processor
    bool low_delay; // for live sources: with threads 0, none that holds a picture back
    struct decode_device *device; // NULL: no NVDEC
    bool keep_on_device;          // the backend takes cuda frames; else they are downloaded
    int in_flight;                // frames that may be held at once beside the decoder's own
    enum damaged damaged;
};

int decoder_open(struct decoder **ret, const struct AVCodecParameters *,
                 const struct decode_options *);
// Gives it one packet; NULL flushes: decode_next then yields what is left and -ENODATA. Returns 0,
// also where damage will show in pictures to come; -EAGAIN cannot happen when decode_next was
// called until -EAGAIN; -EBADMSG: a picture that cannot be decoded (count it); -ENOTSUP: this
// stream cannot be decoded here.
int decode_send(struct decoder *, const struct packet *);
// The next picture, in presentation order. Returns 0; -EAGAIN: wants packets; -ENODATA: the end
// after a flush; -EBADMSG: a picture was withheld by the policy `damaged` (count it). info.epoch
// and FRAMED_FLAG_FIRST_OF_EPOCH are left 0: the camera knows them.
int decode_next(struct decoder *, struct frame *);
void decoder_restart(struct decoder *); // after a seek or a flush: forgets what it holds
void decoder_close(struct decoder *);   // frames that are out stay valid; accepts NULL

// "nvdec h264", "cpu h264": may change in flight.
const char *decoder_describe(const struct decoder *);
// A sentence worth one log line since the last call ("AV1 is not supported by NVDEC here: decoding
// on the cpu"), or NULL. Valid until the next call.
const char *decoder_notice(struct decoder *);

#endif
