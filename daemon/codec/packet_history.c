#include "daemon/codec/packet_history.h"

#include <errno.h>
#include <libavcodec/avcodec.h>

#include "daemon/base/clock.h"
#include "daemon/base/number.h"
#include "daemon/source/libav_version.h"
#include "daemon/wire.h"

enum { REORDERED_MAX = 32 }; // packets that a decoder holds back: both fields of each picture

static struct packet_info *entry(struct packet_history *history, int64_t serial)
{
    return &history->info[(uint64_t)serial % PACKETS_KNOWN];
}

static void drop_before(struct packet_history *history, int64_t serial)
{
    for (; history->kept < serial; history->kept++)
        av_packet_unref(entry(history, history->kept)->packet.av);
    if (history->replay < history->kept)
        history->replay = history->kept;
}

void packet_history_drop(struct packet_history *history)
{
    drop_before(history, history->serial + 1);
    history->whole = false;
}

void packet_history_begin(struct packet_history *history)
{
    if (history->kept == 0)
        history->kept = history->replay = history->serial + 1;
    packet_history_drop(history);
    history->first = history->serial + 1;
    history->passed = history->serial;
    history->last_pts_ns = AV_NOPTS_VALUE;
    history->interval_ns = 0;
}

void packet_history_finish(struct packet_history *history)
{
    for (int i = 0; i < PACKETS_KNOWN; i++)
        av_packet_free(&history->info[i].packet.av);
}

bool packet_history_keeps(const struct packet_history *history)
{
    return history->kept <= history->serial;
}

bool packet_history_is_full(const struct packet_history *history)
{
    return history->serial + 1 - history->kept == PACKETS_KEPT_MAX;
}

void packet_history_drop_stale(struct packet_history *history, int64_t received_ns)
{
    if (packet_history_keeps(history) &&
        entry(history, history->kept)->packet.received_ns < received_ns)
        packet_history_drop(history);
}

int packet_history_add(struct packet_history *history, const struct packet *packet,
                       const struct packet_facts *facts, bool keep)
{
    if (!keep || packet_history_is_full(history))
        packet_history_drop(history);
    const bool continues = packet_history_keeps(history);
    const bool replays = packet_history_replays(history);
    struct packet_info *info = entry(history, ++history->serial);
    AVPacket *av = info->packet.av;
    *info = (struct packet_info){
        .packet = *packet,
        .facts = *facts,
        .damaged = facts->damaged || (packet->av->flags & AV_PKT_FLAG_CORRUPT),
        .done = packet->old,
        .given = packet->old, // given out before: not again
        .to_repeat = packet->old,
    };
    info->packet.av = av;
    if (!replays)
        history->replay = history->serial + 1;
    if (!continues)
        history->kept = history->serial + 1;
    if (!keep || (!continues && !(packet->av->flags & AV_PKT_FLAG_KEY)))
        return 0;
    if ((!av && !(av = info->packet.av = av_packet_alloc())) || av_packet_ref(av, packet->av) < 0) {
        drop_before(history, history->serial);
        history->kept = history->replay = history->serial + 1;
        history->whole = false;
        return -ENOMEM;
    }
    if (!continues)
        history->kept = history->serial;
    return 0;
}

struct packet_info *packet_history_info(struct packet_history *history, int64_t serial)
{
    struct packet_info *info = entry(history, serial);
    return info->facts.serial == serial ? info : entry(history, history->serial);
}

// --- pictures

// Returns the lowest pts above the last picture's among packets whose pictures are still to come,
// without guesses; INT64_MAX: none.
static int64_t next_good_pts(struct packet_history *history)
{
    int64_t next_ns = INT64_MAX;
    const int64_t oldest = bounds_max(history->first, history->serial - REORDERED_MAX);
    for (int64_t serial = oldest; serial <= history->serial; serial++) {
        const struct packet_info *info = entry(history, serial);
        if (!info->done && !info->packet.guessed && info->packet.pts_ns > history->last_pts_ns)
            next_ns = bounds_min(next_ns, info->packet.pts_ns);
    }
    return next_ns;
}

// Packets come in decoding order, and a guess follows the packet before: the picture may be shown
// earlier or later.
static int64_t place_guess(struct packet_history *history, int64_t guess_ns)
{
    const int64_t last_ns = history->last_pts_ns, next_ns = next_good_pts(history);
    if (last_ns == AV_NOPTS_VALUE)
        return bounds_min(guess_ns, next_ns - 1);
    if (guess_ns > last_ns && guess_ns < next_ns)
        return guess_ns;
    const int64_t room_ns = next_ns == INT64_MAX ? INT64_MAX : (next_ns - last_ns) / 2;
    return last_ns + bounds_max(bounds_min(history->interval_ns, room_ns), 1);
}

// Without a time in the stream: the last picture's plus the duration, or the time between arrivals.
static int64_t pts_of(struct packet_history *history, const AVCodecContext *codec,
                      const AVFrame *av, const struct packet *packet)
{
    const AVRational rate = codec->framerate;
    if (av->best_effort_timestamp != AV_NOPTS_VALUE)
        return packet->guessed ? place_guess(history, av->best_effort_timestamp)
                               : av->best_effort_timestamp;
    if (history->last_pts_ns == AV_NOPTS_VALUE)
        return 0;
    if (libav_duration(av) > 0)
        return history->last_pts_ns + libav_duration(av);
    if (rate.num > 0 && rate.den > 0)
        return history->last_pts_ns + av_rescale_q(1, av_inv_q(rate), codec->pkt_timebase);
    const int64_t since_ns = packet->received_ns - history->last_received_ns;
    return history->last_pts_ns + (since_ns > 0 ? since_ns : 1);
}

// Returns true if a damaged packet before this one gave no picture, as when the decoder takes the
// pictures after a lost keyframe for too late: this picture then refers to a missing one.
static bool follows_damage(struct packet_history *history, int64_t serial)
{
    bool damaged = false;
    for (int64_t i = history->passed + 1; i < serial; i++)
        damaged |= (entry(history, i)->damaged || entry(history, i)->lacks_reference) &&
                   !entry(history, i)->skipped;
    if (serial > history->passed)
        history->passed = serial;
    return damaged;
}

struct frame_info packet_history_picture(struct packet_history *history,
                                         const AVCodecContext *codec, const AVFrame *av,
                                         bool *harmed)
{
    struct packet_info *info = packet_history_info(history, libav_serial(av));
    const struct packet *packet = &info->packet;
    const bool follows = follows_damage(history, libav_serial(av)) && !libav_is_keyframe(av);
    // libavcodec marks H.264 pictures as corrupt up to its own recovery point.
    const bool corrupt = av->flags & AV_FRAME_FLAG_CORRUPT;
    *harmed = av->decode_error_flags || info->damaged || follows ||
              (corrupt && codec->codec_id != AV_CODEC_ID_H264);
    const bool damaged = *harmed || corrupt || info->lacks_reference;
    const struct frame_info ret = {
        .pts_ns = pts_of(history, codec, av, packet),
        .capture_ns = packet->capture_ns,
        .received_ns = packet->received_ns,
        .decoded_ns = monotonic_ns(),
        .waited = packet->waited,
        .flags = (damaged ? FRAMED_FLAG_DAMAGED : 0) |
                 (libav_is_keyframe(av) ? FRAMED_FLAG_KEYFRAME : 0) |
                 (packet->capture_clock ? FRAMED_FLAG_CAPTURE_CLOCK : 0),
    };
    info->given++;
    info->done = true;
    if (!packet->guessed && !history->last_guessed && history->last_pts_ns != AV_NOPTS_VALUE)
        history->interval_ns = bounds_max(ret.pts_ns - history->last_pts_ns, 0);
    history->last_guessed = packet->guessed;
    history->last_pts_ns = ret.pts_ns;
    history->last_received_ns = ret.received_ns;
    return ret;
}

void packet_history_keyframe(struct packet_history *history, int64_t serial)
{
    if (serial < history->kept || serial > history->serial ||
        !(entry(history, serial)->packet.av->flags & AV_PKT_FLAG_KEY))
        return;
    drop_before(history, serial);
    history->whole = true;
}

// --- another decoder carries on

void packet_history_rewind(struct packet_history *history)
{
    for (int64_t serial = history->kept; serial <= history->serial; serial++)
        entry(history, serial)->to_repeat = entry(history, serial)->given;
    history->replay = history->kept;
}

bool packet_history_replays(const struct packet_history *history)
{
    return history->replay <= history->serial;
}

struct packet_info *packet_history_next(struct packet_history *history)
{
    return packet_history_replays(history) ? entry(history, history->replay++) : NULL;
}

bool packet_history_repeats(struct packet_history *history, int64_t serial)
{
    struct packet_info *info = entry(history, serial);
    const bool repeats = info->facts.serial == serial && info->to_repeat > 0;
    info->to_repeat -= repeats;
    return repeats;
}

bool packet_history_unskip(struct packet_history *history, int64_t pts_ns)
{
    int64_t first = history->serial + 1, highest_ns = INT64_MIN;
    while (first > history->kept && entry(history, first - 1)->skipped) {
        first--;
        highest_ns = bounds_max(highest_ns, entry(history, first)->packet.av->pts);
    }
    if (!packet_history_keeps(history) || first == history->kept)
        return false;
    for (int64_t serial = first; serial <= history->serial; serial++) {
        struct packet_info *info = entry(history, serial);
        const int64_t shown_ns = info->packet.av->pts;
        info->to_repeat = shown_ns < pts_ns && shown_ns < highest_ns;
        info->done = info->to_repeat;
        info->skipped = false;
    }
    if (history->replay > first)
        history->replay = first;
    return true;
}

int packet_history_missing(struct packet_history *history, int reach)
{
    int missing = 0;
    const int64_t oldest = bounds_max(history->kept - reach, history->first);
    for (int64_t serial = oldest; serial < history->kept; serial++) {
        struct packet_info *info = packet_history_info(history, serial);
        missing += !info->done;
        info->done = true;
    }
    return missing;
}
