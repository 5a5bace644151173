#include "daemon/rtsp/rtp_source.h"

#include <stdlib.h>

#include "daemon/base/number.h"
#include "daemon/rtsp/rtp_packet.h"

enum {
    ADOPTED = 50,       // packets in a row that make another payload type ours
    NUMBERS_MAX = 16,   // maximum distance of numbers over a change of the SSRC
    RESTART_MIN = 1024, // a number lower by more is a restart, not a late packet
};

static const int64_t MS = 1000000, SILENCE_MIN_NS = 500 * MS, SILENCE_MAX_NS = 5000 * MS,
                     LEFT_NS = 1000 * MS; // minimum: a second sender is heard by then

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
    if (source->locked || source->other_video || source->other_codecs[type] || !may_be_video(type))
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

// Returns true if another SSRC may become ours: ours has been silent for longer than ever before. A
// camera may send one picture a second next to the rest of an older session.
static bool may_take_over(const struct rtp_source *source, const struct rtp_packet *packet)
{
    const int64_t enough_ns =
        bounds_min(bounds_max(2 * source->pause_ns, SILENCE_MIN_NS), SILENCE_MAX_NS);
    return source->parted || silent_ns(source, packet) >= enough_ns ||
           (source->hinted && !source->hint_met && packet->ssrc == source->hint);
}

// Packets of an older session become ours only if nothing else arrives: a camera may begin to send
// before PLAY.
static bool is_left_over(struct rtp_source *source, const struct rtp_packet *packet)
{
    if (source->locked || !source->avoids || packet->ssrc != source->avoided ||
        (source->hinted && packet->ssrc == source->hint))
        return false;
    if (source->avoided_ns == 0)
        source->avoided_ns = packet->received_ns;
    return packet->received_ns - source->avoided_ns < SILENCE_MIN_NS;
}

// Returns true if the timestamps advance about like our clock: packets held back by a slow network
// or by ourselves arrive late or all at once.
static bool stamp_goes_on(const struct rtp_source *source, const struct rtp_packet *packet,
                          const struct rtp_advance *advance)
{
    return advance->known && llabs(advance->stamp_ns - silent_ns(source, packet)) <= SILENCE_MAX_NS;
}

// Some cameras change the SSRC with each group of pictures, but continue the numbers. The numbers
// of another sender are random.
static bool goes_on_by_numbers(const struct rtp_source *source, const struct rtp_packet *packet,
                               const struct rtp_advance *advance)
{
    return !source->mixes && advance->numbers > 0 && advance->numbers <= NUMBERS_MAX &&
           stamp_goes_on(source, packet, advance);
}

// Accepts new numbers. The next packet of the former SSRC undoes a wrong change.
static bool goes_on_by_stamps(const struct rtp_source *source, const struct rtp_packet *packet,
                              const struct rtp_advance *advance)
{
    return !source->mixes && advance->stamp_ns > 0 && stamp_goes_on(source, packet, advance);
}

// Returns true for a packet of the previous source so soon that it may still be sending.
static bool is_of_left_source(const struct rtp_source *source, const struct rtp_packet *packet)
{
    return packet->ssrc == source->left.ssrc && packet->received_ns < source->left_until_ns;
}

// Returns true if the network repeated the packet, or delivered it after the next source's first.
static bool is_late_of_left_source(const struct rtp_source *source, const struct rtp_packet *packet,
                                   const struct rtp_advance *advance)
{
    const int numbers = (int16_t)(packet->sequence - source->left.sequence);
    const bool precedes = source->left_by_numbers
                              ? (int16_t)(packet->sequence - source->first.sequence) < 0
                              : (int32_t)(packet->timestamp - source->first.timestamp) < 0;
    return is_of_left_source(source, packet) &&
           (numbers <= 0 || (advance->reorders && numbers <= NUMBERS_MAX && precedes));
}

static struct rtp_source_place place_of(const struct rtp_packet *packet)
{
    return (struct rtp_source_place){packet->ssrc, packet->sequence, packet->timestamp};
}

static void change_source(struct rtp_source *source, const struct rtp_packet *packet,
                          int64_t left_until_ns, bool by_numbers)
{
    source->changes += source->locked;
    source->left = source->newest;
    source->left_until_ns = left_until_ns;
    source->left_by_numbers = by_numbers;
    source->locked = true;
    source->parted = false;
    source->ssrc = packet->ssrc;
    source->first = source->newest = place_of(packet);
}

static void note_newest(struct rtp_source *source, const struct rtp_packet *packet)
{
    const int numbers = (int16_t)(packet->sequence - source->newest.sequence);
    if (numbers > 0 || numbers < -RESTART_MIN)
        source->newest = place_of(packet);
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
        note_newest(source, packet);
    } else if (is_late_of_left_source(source, packet, advance)) {
        return source->left_by_numbers && !advance->repeated ? RTP_OURS : RTP_FOREIGN;
    } else if (source->locked && goes_on_by_numbers(source, packet, advance)) {
        change_source(source, packet, left_ns, true);
    } else if (is_of_left_source(source, packet)) {
        source->mixes = true; // two senders: return to the first
        change_source(source, packet, 0, false);
        verdict = RTP_OURS_RESTARTED;
    } else if (source->locked && goes_on_by_stamps(source, packet, advance)) {
        change_source(source, packet, left_ns, false);
        verdict = RTP_OURS_RESTARTED;
    } else if (!source->locked || may_take_over(source, packet)) {
        change_source(source, packet, 0, false);
        source->pause_ns = 0;
        verdict = RTP_OURS_RESTARTED;
    } else {
        return RTP_FOREIGN;
    }
    source->hint_met |= packet->ssrc == source->hint;
    source->heard_ns = packet->received_ns;
    return verdict;
}
