#include "daemon/rtsp/rtp_source.h"

#include "daemon/base/bounds.h"
#include "daemon/rtsp/rtp_packet.h"

enum { ADOPTED = 50 }; // so many packets of another payload type are ours, if none of ours came

static const int64_t SILENCE_MIN_NS = 500000000, SILENCE_MAX_NS = 5000000000;

// Types below 35 belong to audio or to codecs that nobody decodes here, but for JPEG; those from 72
// to 76 are how RTCP looks as RTP.
static bool may_be_video(int type)
{
    return type == 26 || (type >= 35 && type < 72) || type > 76;
}

static bool has_our_type(struct rtp_source *source, int type)
{
    if (type == source->payload_type)
        return true;
    if (source->locked || source->other_video || !may_be_video(type))
        return false;
    source->others = type == source->other_type ? source->others + 1 : 1;
    source->other_type = type;
    if (source->others < ADOPTED)
        return false;
    source->payload_type = type;
    return true;
}

// Another SSRC becomes ours only when ours is silent, and for longer than it was before: a camera
// may send a picture a second, and the rest of an older session beside it.
static bool may_take_over(const struct rtp_source *source, const struct rtp_packet *packet)
{
    const int64_t enough_ns =
        bounds_min(bounds_max(2 * source->pause_ns, SILENCE_MIN_NS), SILENCE_MAX_NS);
    return packet->received_ns - source->heard_ns >= enough_ns ||
           (source->hinted && !source->hint_met && packet->ssrc == source->hint);
}

// What an older session left is taken for ours only if nothing else comes: a camera may begin to
// send ahead of PLAY.
static bool is_left_over(struct rtp_source *source, const struct rtp_packet *packet)
{
    if (source->locked || !source->avoids || packet->ssrc != source->avoided ||
        (source->hinted && packet->ssrc == source->hint))
        return false;
    if (source->avoided_ns == 0)
        source->avoided_ns = packet->received_ns;
    return packet->received_ns - source->avoided_ns < SILENCE_MIN_NS;
}

enum rtp_source_verdict rtp_source_judge(struct rtp_source *source, const struct rtp_packet *packet)
{
    if (!has_our_type(source, packet->payload_type) || is_left_over(source, packet))
        return RTP_FOREIGN;
    const bool same = source->locked && packet->ssrc == source->ssrc;
    if (source->locked && !same && !may_take_over(source, packet))
        return RTP_FOREIGN;
    const int64_t pause_ns = same ? packet->received_ns - source->heard_ns : 0;
    source->pause_ns = same && source->pause_ns > pause_ns ? source->pause_ns : pause_ns;
    source->locked = true;
    source->ssrc = packet->ssrc;
    source->hint_met |= packet->ssrc == source->hint;
    source->heard_ns = packet->received_ns;
    return same ? RTP_OURS : RTP_OURS_ANEW;
}
