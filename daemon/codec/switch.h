// The state of a decoder (daemon/codec/decoder.h), and the switch between its codecs. It chooses
// NVDEC, other hardware or the cpu, and lets one take over from another with the packets since the
// last keyframe, so that no picture is lost or doubled. The decoder's thread calls everything.
#ifndef FRAMED_DAEMON_CODEC_SWITCH_H
#define FRAMED_DAEMON_CODEC_SWITCH_H

#include "daemon/codec/codec.h"
#include "daemon/codec/corruption.h"
#include "daemon/codec/decode_options.h"
#include "daemon/codec/packet_history.h"
#include "daemon/codec/picture_filter.h"

struct decoder {
    struct codec codec;
    AVCodecParameters *parameters;
    struct decode_options options;
    struct buffers *buffers;
    struct pictures *pictures;
    char notice[256], description[64];
    bool notice_is_new;

    // --- packets in
    struct packet_reader *reader;
    struct picture_filter filter;
    // Keeps the packets while there is a device: NVDEC needs them to take over, and the cpu if
    // NVDEC fails.
    struct packet_history history;
    int64_t skipped, failures; // not reported yet; since it was opened
    bool harmed;               // met undecodable data, which may have left traces
    bool intact;               // nothing is missing since a keyframe
    bool hole;                 // packet.hole of the last packet
    bool flushing;             // no more packets will come
    bool awaiting;             // packets are useless before the next keyframe
    int awaited;               // packets since then

    // --- pictures out
    struct corruption corruption;
    struct hash_checker hash_checker;
    int lost;        // pictures still to be given out as lost
    int64_t shown;   // pictures since the decoder was opened
    int orientation; // decoder_orientation
    const char *converted;
    const char *matrix; // the stream's, last reported as read as another one
    bool by_intra;      // notice given that intra pictures serve as recovery points

    // --- the switch
    struct decode_device *device;          // to decode on, now or from a keyframe on; NULL: none
    const struct decoder_choice *hardware; // in place of `device`; NULL: none, or refused
    const char *driver;                    // required of the hardware; NULL: any
    bool hardware_failed;                  // the CPU decodes the rest of the connection
    bool hardware_logged;                  // logged, and it has not worked since
    bool hashes_logged;                    // logged that hardware's are not compared
    bool keep_on_device, joined;           // joined: at least once
    bool unopened;                         // a live camera's, on the device: nothing sent to it yet
    struct nvdec_turn turn;
    int64_t waiting_since_ns; // for the turn; 0: not waiting
    int error;                // of the last opening of a codec: 0 or negative errno
    int64_t fallbacks;        // not reported yet
    enum fallback last_fallback;
    int64_t held_up_ns; // by closed codecs
};

int switch_join(struct decoder *, const struct decode_target *); // as decoder_join
void switch_leave(struct decoder *);                             // as decoder_leave
void switch_restart(struct decoder *);                           // after codec_flush
// Opens the codec that is due to take over, if any. Returns 0 or a negative errno.
int switch_if_due(struct decoder *);
// The cpu takes over from a device that refuses the stream or failed with an AVERROR. The same.
int switch_to_cpu(struct decoder *, int error);
// Returns true if another codec may need the packets that come now.
bool switch_keeps_packets(const struct decoder *);

// NVDEC opens one decoder after another. A live camera is read meanwhile: packets since its last
// keyframe wait in the history. If that is full, and at the end, sending a packet blocks instead.
bool switch_waits_for_turn(struct decoder *);
void switch_end_turn(struct decoder *); // after a packet was sent, or if none will be

// Through decoder_notice.
__attribute__((format(printf, 2, 3))) void switch_say(struct decoder *, const char *format, ...);

#endif
