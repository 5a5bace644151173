#include "daemon/rtsp/rtp_source.h"

#include <stdlib.h>

#include "daemon/base/bounds.h"
#include "daemon/rtsp/rtp_packet.h"

enum {
    ADOPTED = 50,     // packets of another payload type in a row are ours, if none of ours came
    NUMBERS_MAX = 16, // distance of numbers over a change of the SSRC
};

static const int64_t MS = 1000000, SILENCE_MIN_NS = 500 * MS, SILENCE_MAX_NS = 5000 * MS,
                     STAMP_ERROR_NS = 250 * MS, // of a stream that goes on
    LEFT_NS = 1000 * MS;                        // at least: a second sender is heard by then

// Types below 35 belong to audio or to codecs that framed does not decode, except JPEG. RTCP read
// as RTP has the types 72 to 76.
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

static int64_t silent_ns(const struct rtp_source *source, const struct rtp_packet *packet)
{
    return packet->received_ns - source->heard_ns;
}

// Another SSRC becomes ours once ours has been silent for longer than ever before: a camera may
// send one picture a second, and the rest of an older session beside it.
static bool may_take_over(const struct rtp_source *source, const struct rtp_packet *packet)
{
    const int64_t enough_ns =
        bounds_min(bounds_max(2 * source->pause_ns, SILENCE_MIN_NS), SILENCE_MAX_NS);
    return silent_ns(source, packet) >= enough_ns ||
           (source->hinted && !source->hint_met && packet->ssrc == source->hint);
}

// Packets of an older session are ours only if nothing else comes: a camera may begin to send ahead
// of PLAY.
static bool is_left_over(struct rtp_source *source, const struct rtp_packet *packet)
{
    if (source->locked || !source->avoids || packet->ssrc != source->avoided ||
        (source->hinted && packet->ssrc == source->hint))
        return false;
    if (source->avoided_ns == 0)
        source->avoided_ns = packet->received_ns;
    return packet->received_ns - source->avoided_ns < SILENCE_MIN_NS;
}

// Some cameras change the SSRC with each group of pictures. The numbers go on then: those of
// another sender are random.
static bool goes_on_by_numbers(const struct rtp_source *source, const struct rtp_packet *packet,
                               const struct rtp_advance *advance)
{
    const int64_t error_ns = advance->stamp_ns - silent_ns(source, packet);
    return !source->mixes && advance->known && advance->numbers > 0 &&
           advance->numbers <= NUMBERS_MAX && llabs(error_ns) <= SILENCE_MAX_NS;
}

// The numbers are new, but the timestamps go on as our clock does, and the packet does not come
// between two of ours.
static bool goes_on_by_stamps(const struct rtp_source *source, const struct rtp_packet *packet,
                              const struct rtp_advance *advance)
{
    const int64_t ns = silent_ns(source, packet);
    return !source->mixes && advance->known && advance->stamp_ns > 0 &&
           ns >= source->pause_ns / 2 && llabs(advance->stamp_ns - ns) <= STAMP_ERROR_NS;
}

// A packet of the source before `ssrc`, so soon that it may still send.
static bool is_of_left_source(const struct rtp_source *source, const struct rtp_packet *packet)
{
    return packet->ssrc == source->left && packet->received_ns < source->left_until_ns;
}

static void change_source(struct rtp_source *source, uint32_t ssrc, int64_t left_until_ns)
{
    source->changes += source->locked;
    source->left = source->ssrc;
    source->left_until_ns = left_until_ns;
    source->locked = true;
    source->ssrc = ssrc;
}

enum rtp_source_verdict rtp_source_judge(struct rtp_source *source, const struct rtp_packet *packet,
                                         const struct rtp_advance *advance)
{
    enum rtp_source_verdict verdict = RTP_OURS;
    const int64_t left_ns = packet->received_ns + bounds_max(LEFT_NS, 2 * source->pause_ns);
    if (!has_our_type(source, packet->payload_type) || is_left_over(source, packet))
        return RTP_FOREIGN;
    if (source->locked && packet->ssrc == source->ssrc) {
        source->pause_ns = bounds_max(source->pause_ns, silent_ns(source, packet));
    } else if (source->locked && goes_on_by_numbers(source, packet, advance)) {
        change_source(source, packet->ssrc, left_ns);
    } else if (is_of_left_source(source, packet)) {
        if (advance->reorders && advance->numbers > -NUMBERS_MAX)
            return advance->repeated ? RTP_FOREIGN : RTP_OURS;
        source->mixes = true; // there are two senders: back to the first
        change_source(source, packet->ssrc, 0);
        verdict = RTP_OURS_RESTARTED;
    } else if (source->locked && goes_on_by_stamps(source, packet, advance)) {
        change_source(source, packet->ssrc, left_ns);
        verdict = RTP_OURS_RESTARTED;
    } else if (!source->locked || may_take_over(source, packet)) {
        change_source(source, packet->ssrc, 0);
        source->pause_ns = 0;
        verdict = RTP_OURS_RESTARTED;
    } else {
        return RTP_FOREIGN;
    }
    source->hint_met |= packet->ssrc == source->hint;
    source->heard_ns = packet->received_ns;
    return verdict;
}
