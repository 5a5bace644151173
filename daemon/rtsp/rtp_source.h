// Which RTP packets are of our stream: cameras send other tracks on its channel, and go on with
// older sessions. Pure.
#ifndef FRAMED_DAEMON_RTSP_RTP_SOURCE_H
#define FRAMED_DAEMON_RTSP_RTP_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct rtp_packet;

struct rtp_source { // ready with its first six set and the rest zeroed
    int payload_type;
    bool other_video; // another payload type may be another video track's
    bool hinted;      // the camera announced the SSRC `hint`
    uint32_t hint;
    bool avoids; // packets of the SSRC `avoided` came before ours could
    uint32_t avoided;
    bool locked; // `ssrc` is ours
    uint32_t ssrc;
    // Private.
    bool hint_met;
    int64_t avoided_ns;         // when the first of them came since then
    int64_t heard_ns, pause_ns; // of ours: last packet, longest pause
    int other_type, others;
};

enum rtp_source_verdict {
    RTP_FOREIGN,
    RTP_OURS,
    RTP_OURS_ANEW, // the first packet of this SSRC
};

enum rtp_source_verdict rtp_source_judge(struct rtp_source *, const struct rtp_packet *);

#endif
