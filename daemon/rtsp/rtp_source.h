// Decides which RTP packets belong to our stream: cameras send other tracks on its channel,
// continue older sessions, and change the SSRC in the middle of a stream. Pure.
#ifndef FRAMED_DAEMON_RTSP_RTP_SOURCE_H
#define FRAMED_DAEMON_RTSP_RTP_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct rtp_packet;

struct rtp_source_place { // a packet in the numbering of its sender
    uint32_t ssrc;
    uint16_t sequence;
    uint32_t timestamp;
};

struct rtp_source { // ready with the first seven set and the rest zeroed
    int payload_type;
    bool other_video;       // other payload types may belong to another video track
    bool other_codecs[128]; // payload types of other codecs
    bool hinted;            // the camera announced the SSRC `hint`
    uint32_t hint;
    bool avoids; // packets of the SSRC `avoided` came before ours could
    uint32_t avoided;
    bool locked; // `ssrc` is ours
    uint32_t ssrc;
    uint64_t changes; // of `ssrc`
    bool parted;      // `ssrc` sent BYE: any other source may follow it
    // Private.
    bool mixes; // the camera sends two streams at once: no SSRC continues another
    struct rtp_source_place first, newest; // packets of `ssrc`
    struct rtp_source_place left;          // the newest packet of the SSRC before `ssrc`
    int64_t left_until_ns; // a newer packet of that SSRC before this time shows that it continues
    bool left_by_numbers;  // the numbers of `ssrc` continue those of that SSRC
    bool hint_met;
    int64_t avoided_ns;         // when the first packet of `avoided` arrived
    int64_t heard_ns, pause_ns; // of `ssrc`: last packet, longest pause
    int other_type, others;
};

enum rtp_source_verdict {
    RTP_FOREIGN,
    RTP_OURS,
    RTP_OURS_RESTARTED, // the first packet of this SSRC: its numbers are new
};

// A packet compared with our newest one.
struct rtp_advance {
    bool known;       // there is one
    int numbers;      // in sequence numbers; 0 or less: not newer
    int64_t stamp_ns; // in timestamps
    bool reorders;    // the network reorders packets
    bool repeated;    // a packet of ours had this number
};

enum rtp_source_verdict rtp_source_judge(struct rtp_source *, const struct rtp_packet *,
                                         const struct rtp_advance *);

#endif
