#include "daemon/decode/packet_info.h"

#include <libavcodec/avcodec.h>

#include "daemon/base/clock.h"
#include "daemon/wire.h"

void facts_begin(struct facts *facts)
{
    facts->first = facts->serial + 1;
    facts->passed = facts->serial;
    facts->last_pts_ns = AV_NOPTS_VALUE;
}

void facts_packet(struct facts *facts, const struct packet *packet)
{
    facts->serial++;
    facts->fact[facts->serial % FACTS_MAX] = (struct fact){
        .serial = facts->serial,
        .received_ns = packet->received_ns,
        .capture_ns = packet->capture_ns,
        .capture_clock = packet->capture_clock,
        .damaged = packet->av->flags & AV_PKT_FLAG_CORRUPT,
    };
}

struct fact *facts_of(struct facts *facts, int64_t serial)
{
    struct fact *fact = &facts->fact[(uint64_t)serial % FACTS_MAX];
    return fact->serial == serial ? fact : &facts->fact[facts->serial % FACTS_MAX];
}

// Where the stream gives no time: the last picture's and the duration, or the time between
// arrivals.
static int64_t pts_of(const struct facts *facts, const AVCodecContext *codec, const AVFrame *av,
                      int64_t received_ns)
{
    AVRational rate = codec->framerate;
    if (av->best_effort_timestamp != AV_NOPTS_VALUE)
        return av->best_effort_timestamp;
    if (facts->last_pts_ns == AV_NOPTS_VALUE)
        return 0;
    if (av->pkt_duration > 0)
        return facts->last_pts_ns + av->pkt_duration;
    if (rate.num > 0 && rate.den > 0)
        return facts->last_pts_ns + av_rescale_q(1, av_inv_q(rate), codec->pkt_timebase);
    return facts->last_pts_ns +
           (received_ns > facts->last_received_ns ? received_ns - facts->last_received_ns : 1);
}

// Whether a packet that was damaged came ahead of this one and no picture of it, as where the
// decoder takes what follows a lost keyframe for too late: this one is made from what is not there.
static bool follows_damage(struct facts *facts, int64_t serial)
{
    bool damaged = false;
    for (int64_t i = facts->passed + 1; i < serial; i++)
        damaged |= facts->fact[i % FACTS_MAX].damaged;
    if (serial > facts->passed)
        facts->passed = serial;
    return damaged;
}

struct frame_info facts_picture(struct facts *facts, const AVCodecContext *codec, const AVFrame *av)
{
    struct fact *fact = facts_of(facts, av->reordered_opaque);
    bool follows = follows_damage(facts, av->reordered_opaque) && !av->key_frame;
    bool damaged =
        av->decode_error_flags || (av->flags & AV_FRAME_FLAG_CORRUPT) || fact->damaged || follows;
    struct frame_info info = {
        .pts_ns = pts_of(facts, codec, av, fact->received_ns),
        .capture_ns = fact->capture_ns,
        .received_ns = fact->received_ns,
        .decoded_ns = monotonic_ns(),
        .flags = (damaged ? FRAMED_FLAG_DAMAGED : 0) | (av->key_frame ? FRAMED_FLAG_KEYFRAME : 0) |
                 (fact->capture_clock ? FRAMED_FLAG_CAPTURE_CLOCK : 0),
    };
    fact->given++;
    fact->settled = true;
    facts->last_pts_ns = info.pts_ns;
    facts->last_received_ns = info.received_ns;
    return info;
}

void facts_replay(struct facts *facts, int64_t from)
{
    for (int64_t serial = from; serial <= facts->serial; serial++) {
        struct fact *fact = facts_of(facts, serial);
        fact->forgotten = fact->given;
    }
}

bool facts_repeats(struct facts *facts, int64_t serial)
{
    struct fact *fact = facts_of(facts, serial);
    bool repeats = fact->serial == serial && fact->forgotten > 0;
    fact->forgotten -= repeats;
    return repeats;
}

int facts_missing(struct facts *facts, int64_t before, int reach)
{
    int missing = 0;
    int64_t oldest = before - reach > facts->first ? before - reach : facts->first;
    for (int64_t serial = oldest; serial < before; serial++) {
        struct fact *fact = facts_of(facts, serial);
        missing += !fact->settled;
        fact->settled = true;
    }
    return missing;
}
