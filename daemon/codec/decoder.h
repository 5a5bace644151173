// Pictures of one camera, decoded by libavcodec: on the CPU, by NVDEC with frames that stay on the
// device, or by other hardware with pictures copied to the host. libswscale converts formats that
// no kernel reads. One thread (the camera's) uses a decoder; any thread may release frames.
#ifndef FRAMED_DAEMON_CODEC_DECODER_H
#define FRAMED_DAEMON_CODEC_DECODER_H

#include "daemon/codec/decode_options.h"
#include "daemon/codec/frame.h"
#include "daemon/source/demux.h"

struct decoder;

// Needs no device: decoder_join gives it one. -ENOTSUP: no decoder here supports the stream.
int decoder_open(struct decoder **ret, const struct AVCodecParameters *,
                 const struct decode_options *);

// Sets the target of the pictures. Pictures decoded on the cpu now lie in memory pinned by
// `driver`. With a device, NVDEC takes over if the options allow it: at once before the first
// packet, and after decoder_leave on NVDEC unless the stream is live; else after the next keyframe
// that the cpu gives out. Frames stay on the device if driver->takes_cuda. Backend and device must
// live until decoder_leave. Returns 0; -ENODEV: decode is nvdec, and there is no device at the
// first join; -ENOTSUP: no decoder here supports this stream; -ENOMEM.
int decoder_join(struct decoder *, const struct decode_target *);
// Releases everything of the device and the backend, whatever state these are in. No frame may be
// out. Pictures that NVDEC had not given out are decoded again, from the last keyframe on, by the
// codec that decoder_join chooses. If that keyframe is more than 300 packets back, they are
// withheld, as are all up to the next keyframe.
void decoder_leave(struct decoder *);
// Returns true if the decoder can continue with a stream of these parameters after decoder_restart.
// False after undecodable data: headers, picture order or rotation may have been taken from it.
bool decoder_accepts(const struct decoder *, const struct AVCodecParameters *);
// Sends one packet; NULL flushes: decoder_receive then returns the rest and -ENODATA. Returns 0,
// even if damage will show in later frames; -ENOTSUP: this stream cannot be decoded here; -ENOMEM.
// -EAGAIN cannot happen if decoder_receive was called until -EAGAIN.
int decoder_send(struct decoder *, const struct packet *);
// Gets the next frame, in presentation order; it may be `lost`. Returns 0; -EAGAIN: needs packets;
// -ENODATA: the end after a flush; otherwise as decoder_send. Leaves info.epoch and
// FRAMED_FLAG_FIRST_OF_EPOCH 0: the camera sets them.
int decoder_receive(struct decoder *, struct frame *);
// Returns how long decoder_send and decoder_receive were held up since the last call, because NVDEC
// opened this decoder or another camera's.
int64_t decoder_held_up_ns(struct decoder *);
// Sets the highest rate, in pictures per second, that any output needs; 0, the initial value: all;
// -1: none. If keyframes come that often, only they are decoded with options.pictures `auto`, and
// with -1 in any case. After a rise all pictures come again: with the next packet, after -1 with
// the next keyframe.
void decoder_set_fps(struct decoder *, double fps);
enum decoded_pictures decoder_decodes(const struct decoder *); // now; not PICTURES_AUTO
// Returns how many packets this skipped since the last call.
int64_t decoder_skipped(struct decoder *);
// Returns true while another connection would not help: packets wait for NVDEC to open other
// decoders, or there is no memory for the pictures.
bool decoder_waits(const struct decoder *);
// Returns how many pictures were decoded since it was opened, including withheld ones.
int64_t decoder_pictures(const struct decoder *);
// Returns how often the cpu took over since the last call, from a device that could not be opened,
// refused the stream or failed.
int64_t decoder_fallbacks(struct decoder *);
// Returns the reason of the last takeover.
enum fallback decoder_last_fallback(const struct decoder *);
// Returns the hardware that decodes now, except NVDEC; NULL: none.
const struct hardware *decoder_hardware(const struct decoder *);
// Returns how many packets failed to decode although they, and all since an intact keyframe, were
// complete. Stays 0 unless losses are known (options.losses_known).
int64_t decoder_failures(const struct decoder *);
// Call after a seek, a flush or a new connection: drops all state. NVDEC's decoder stays open.
void decoder_restart(struct decoder *);
void decoder_close(struct decoder *); // frames that are out stay valid; accepts NULL

// Returns the memory that the stream takes in *ret, which is unchanged before the first picture.
void decoder_memory(const struct decoder *, struct stream_memory *ret);
// Returns the orientation that pictures since the last keyframe carry, as demux.orientation;
// -ENODATA: none.
int decoder_orientation(const struct decoder *);
// Returns "nvdec h264", "vaapi h264" or "cpu h264", which may change while decoding.
const char *decoder_describe(const struct decoder *);
// Returns the stream's profile as the codec's standard names it: "High"; NULL: unknown.
const char *decoder_profile(const struct AVCodecParameters *);
// Returns a sentence for the log that is new since the last call ("AV1 is not supported by NVDEC
// here: decoding on the cpu"), or NULL. Valid until the next call.
const char *decoder_notice(struct decoder *);

#endif
