// Pictures of one camera, by libavcodec: on the CPU, by NVDEC where the frames stay on the device,
// or by other hardware, whose pictures are copied to the host. What no kernel reads is converted by
// libswscale to a format that one does. One thread (the camera's) uses a decoder; frames may be
// released on any.
#ifndef FRAMED_DAEMON_DECODE_DECODER_H
#define FRAMED_DAEMON_DECODE_DECODER_H

#include "daemon/decode/decode_options.h"
#include "daemon/decode/frame.h"
#include "daemon/input/demux.h"

struct decoder;

// Needs no device: decoder_join gives it one. -ENOTSUP: nothing here decodes this.
int decoder_open(struct decoder **ret, const struct AVCodecParameters *,
                 const struct decode_options *);

// What the pictures are for. Pictures that the cpu decodes lie in memory that `driver` has pinned
// from now on. With a device, NVDEC takes over where the options allow it: at once before the first
// packet, and after decoder_leave on NVDEC unless the stream is live, else behind the next keyframe
// that the cpu gives out.
// Frames stay on the device where driver->takes_cuda. Both outlive decoder_leave. 0; -ENODEV:
// decode is nvdec, and there is no device at the first join; -ENOTSUP: nothing here decodes this
// stream; -ENOMEM.
int decoder_join(struct decoder *, const struct decode_target *);
// The device and the backend go, whatever state they are in: gives up everything of them. No frame
// may be out. What NVDEC had not given out is decoded again, from the last keyframe on, by what
// decoder_join chooses; where that keyframe is more than 300 packets back, it is withheld, and so
// is all up to the next one.
void decoder_leave(struct decoder *);
// Whether the decoder can go on with a stream of these parameters after decoder_restart. One that
// met what it could not decode may have taken headers, an order of pictures or a rotation from it.
bool decoder_accepts(const struct decoder *, const struct AVCodecParameters *);
// Gives it one packet; NULL flushes: decoder_receive then yields what is left and -ENODATA. Returns
// 0, also where damage will show in frames to come; -EAGAIN cannot happen when decoder_receive was
// called until -EAGAIN; -ENOTSUP: this stream cannot be decoded here; -ENOMEM.
int decoder_send(struct decoder *, const struct packet *);
// The next frame, in presentation order; it may be `lost`. Returns 0; -EAGAIN: wants packets;
// -ENODATA: the end after a flush; otherwise as decoder_send. info.epoch and
// FRAMED_FLAG_FIRST_OF_EPOCH are left 0: the camera knows them.
int decoder_receive(struct decoder *, struct frame *);
// How long decoder_send and decoder_receive were held up since this was last asked, because NVDEC
// opened this decoder or another camera's.
int64_t decoder_held_up_ns(struct decoder *);
// The most pictures per second that anybody wants; 0, as at first: all; -1: none. Where keyframes
// come as often, they alone are decoded if options.pictures is `auto`, and where none are wanted in
// any case. When more are wanted, all pictures come again: with the next packet, after -1 with the
// next keyframe.
void decoder_set_fps(struct decoder *, double fps);
enum decoded_pictures decoder_decodes(const struct decoder *); // now; not PICTURES_AUTO
// Packets that were left out by that since this was last asked.
int64_t decoder_skipped(struct decoder *);
// Whether packets of it wait until NVDEC has opened other decoders.
bool decoder_waits(const struct decoder *);
// Pictures that were decoded since it was opened, withheld ones too.
int64_t decoder_pictures(const struct decoder *);
// Times that the cpu took over from a device that cannot be opened, refuses the stream or failed,
// since this was last asked.
int64_t decoder_fallbacks(struct decoder *);
// The same, the last time.
enum fallback decoder_last_fallback(const struct decoder *);
// The hardware that decodes now, NVDEC left out; NULL: none.
const struct hardware *decoder_hardware(const struct decoder *);
// Packets that could not be decoded though they, and all since an intact keyframe, came whole.
// Where that is not known (options.losses_known) it stays 0.
int64_t decoder_failures(const struct decoder *);
// After a seek, a flush or a new connection: forgets what it holds. NVDEC's decoder stays open.
void decoder_restart(struct decoder *);
void decoder_close(struct decoder *); // frames that are out stay valid; accepts NULL

// What memory the stream takes; of a stream that has given no picture yet *ret stays as it is.
void decoder_memory(const struct decoder *, struct stream_memory *ret);
// How the pictures since the last keyframe say themselves that they are to be shown: as
// demux_orientation. -ENODATA: they do not.
int decoder_orientation(const struct decoder *);
// "nvdec h264", "cpu h264": may change in flight.
const char *decoder_describe(const struct decoder *);
// What of its codec a stream uses, as the codec's standard calls it: "High"; NULL: not known.
const char *decoder_profile(const struct AVCodecParameters *);
// A sentence worth one log line since the last call ("AV1 is not supported by NVDEC here: decoding
// on the cpu"), or NULL. Valid until the next call.
const char *decoder_notice(struct decoder *);

#endif
