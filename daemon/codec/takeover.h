// Chooses the codec for a camera's stream, NVDEC, other hardware or the cpu, and lets one take over
// from another with the packets since the last keyframe, so that no picture is lost or doubled. A
// decoder (daemon/codec/decoder.h) passes packets in and pictures out. Its thread calls
// everything.
#ifndef FRAMED_DAEMON_CODEC_TAKEOVER_H
#define FRAMED_DAEMON_CODEC_TAKEOVER_H

#include "daemon/codec/codec.h"
#include "daemon/codec/corruption.h"
#include "daemon/codec/decode_options.h"
#include "daemon/codec/packet_history.h"

// The decoder reads all of it, sends `codec` its packets, fills `history` and counts `lost` and
// `shown`.
struct takeover {
    struct codec codec;
    AVCodecParameters *parameters;
    struct decode_options options;
    struct decode_device *device;          // to decode on, now or from a keyframe on; NULL: none
    const struct decoder_choice *hardware; // in place of `device`; NULL: none, or refused
    const char *driver;                    // required of the hardware; NULL: any
    bool hardware_failed;                  // the CPU decodes the rest of the connection
    bool hardware_told;                    // logged, and it has not worked since
    bool hashes_told;                      // logged that hardware's are not compared
    bool keep_on_device, joined;           // joined: at least once
    bool unopened;                         // a live camera's, on the device: nothing sent to it yet
    struct nvdec_turn turn;
    int64_t waiting_since_ns; // for the turn; 0: not waiting
    struct buffers *buffers;
    struct pictures *pictures;
    // Keeps the packets while there is a device: NVDEC needs them to take over, and the cpu if
    // NVDEC fails.
    struct packet_history history;
    struct corruption corruption;
    int error;         // of the last opening of a codec: 0 or negative errno
    bool awaiting;     // packets are useless before the next keyframe
    int awaited;       // packets since then
    int lost;          // pictures still to be given out as lost
    bool flushing;     // no more packets will come
    int64_t shown;     // pictures since the decoder was opened
    int64_t fallbacks; // not reported yet
    enum fallback last_fallback;
    int64_t held_up_ns; // by closed codecs
    char notice[256], description[64];
    bool notice_is_new;
};

int takeover_open(struct takeover *, const AVCodecParameters *, const struct decode_options *);
void takeover_close(struct takeover *); // also after takeover_open failed
int takeover_join(struct takeover *, const struct decode_target *); // as decoder_join
void takeover_leave(struct takeover *);
void takeover_restart(struct takeover *); // after codec_flush

// Opens the codec that is due to take over, if any. Returns 0 or a negative errno.
int takeover_begin(struct takeover *);
// The cpu takes over from a device that refuses the stream or failed with an AVERROR. The same.
int takeover_fall_back(struct takeover *, int error);
// Returns true if another codec may need the packets that come now.
bool takeover_keeps_packets(const struct takeover *);

// NVDEC opens one decoder after another. A live camera is read meanwhile: packets since its last
// keyframe wait in the history. If that is full, and at the end, sending a packet blocks instead.
bool takeover_waits_for_turn(struct takeover *);
void takeover_end_turn(struct takeover *); // after a packet was sent, or if none will be
int64_t takeover_held_up_ns(struct takeover *);

void takeover_say(struct takeover *, const char *text); // through decoder_notice

#endif
