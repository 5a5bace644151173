#include "daemon/rtsp/rtp_receiver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"
#include "daemon/rtsp/sdp.h"

enum { HEADER = 12 }; // bytes of a packet

bool rtp_is_rtcp(const uint8_t *data, size_t bytes)
{
    return bytes >= 4 && data[0] >> 6 == 2 && data[1] >= 200 && data[1] <= 204;
}

int rtp_parse(struct rtp_packet *ret, const uint8_t *data, size_t bytes)
{
    if (bytes < HEADER || data[0] >> 6 != 2)
        return -EBADMSG;
    size_t at = HEADER + 4 * (size_t)(data[0] & 15); // after the contributing sources
    struct rtp_packet packet = {.marker = data[1] >> 7,
                                .payload_type = data[1] & 127,
                                .sequence = big_endian_read(data + 2, 2),
                                .timestamp = big_endian_read(data + 4, 4),
                                .ssrc = big_endian_read(data + 8, 4)};
    if (data[0] & 0x10) {
        if (bytes < at + 4)
            return -EBADMSG;
        packet.extension_profile = big_endian_read(data + at, 2);
        packet.extension_bytes = 4 * big_endian_read(data + at + 2, 2);
        packet.extension = data + at + 4;
        at += 4 + packet.extension_bytes;
    }
    if (bytes < at)
        return -EBADMSG;
    packet.payload = data + at;
    packet.bytes = bytes - at;
    if (data[0] & 0x20 && packet.bytes > 0 && data[bytes - 1] <= packet.bytes)
        packet.bytes -= data[bytes - 1];
    *ret = packet;
    return 0;
}

enum {
    WAITING_MAX = 512,           // numbers from the next packet to the last one that waits
    WAITING_BYTES_MAX = 4 << 20, // of all waiting packets
    DROPOUT_MAX = 3000,          // numbers that may be missing in one hole, whatever the time
    STRAYS = 3,                  // packets that prove a new numbering
    NEAR_STRAYS = 32,            // packets that prove one if they may also be late ones
    STRAY_SPREAD = 32,           // distance of numbers within one new numbering
    ADOPTED = 50,                // packets in a row that make another payload type ours
    GOES_ON_MAX = 16,            // maximum distance of numbers over a change of the SSRC
};

static const int64_t MS = 1000000, SECOND = 1000 * MS;
static const int64_t WAIT_NS = 20 * MS; // for a missing packet
static const int64_t SILENCE_MIN_NS = 500 * MS, SILENCE_MAX_NS = 5000 * MS;
static const int64_t LEFT_NS = 1000 * MS;  // minimum: a second sender is heard by then
static const int64_t PER_PACKET = MS / 50; // no camera sends packets faster than one in this time

void rtp_receiver_open(struct rtp_receiver *r, const struct rtsp_track_options *options)
{
    const struct sdp_media *media = options->media;
    *r = (struct rtp_receiver){
        .options = *options,
        .payload_type = media->payload_type,
        .clock_rate = media->clock_rate > 0 ? media->clock_rate : 90000,
    };
}

static void free_packets(struct rtp_held **list)
{
    struct rtp_held *held;
    while ((held = *list)) {
        *list = held->next;
        free(held);
    }
}

static void forget_strays(struct rtp_receiver *r)
{
    free_packets(&r->strays);
    r->n_strays = r->strays_in_row = 0;
}

void rtp_receiver_close(struct rtp_receiver *r)
{
    free_packets(&r->waiting);
    forget_strays(r);
    free(r->given);
}

// Returns how far a packet is ahead of the newest one, in sequence numbers; 0 or less: not newer.
static int numbers_ahead(const struct rtp_receiver *r, const struct rtp_packet *packet)
{
    return (int16_t)(packet->sequence - (uint16_t)(r->highest - r->offset));
}

// Returns the same in timestamps.
static int64_t stamp_ahead_ns(const struct rtp_receiver *r, const struct rtp_packet *packet)
{
    const int64_t ticks = (int32_t)(packet->timestamp - r->highest_timestamp);
    return ticks * SECOND / r->clock_rate;
}

static bool is_seen(const struct rtp_receiver *r, int64_t number)
{
    return number > r->highest - RTP_WINDOW && number <= r->highest && r->seen[number % RTP_WINDOW];
}

// --- the source

enum source { FOREIGN, OURS, OURS_RESTARTED }; // OURS_RESTARTED: the numbers of its SSRC are new

// Types below 35 belong to audio or to codecs that framed does not decode, except JPEG. RTCP read
// as RTP has the types 72 to 76.
static bool has_our_type(struct rtp_receiver *r, int type)
{
    const bool may_be_video = type == 26 || (type >= 35 && type < 72) || type > 76;
    if (type == r->payload_type)
        return true;
    const bool other_codec = r->options.other_codecs && r->options.other_codecs[type];
    if (r->statistics.locked || r->options.other_video || other_codec || !may_be_video)
        return false;
    r->others = type == r->other_type ? r->others + 1 : 1;
    r->other_type = type;
    if (r->others < ADOPTED)
        return false;
    r->payload_type = type;
    return true;
}

static int64_t silent_ns(const struct rtp_receiver *r, const struct rtp_packet *packet)
{
    return packet->received_ns - r->heard_ns;
}

static bool is_announced(const struct rtp_receiver *r, const struct rtp_packet *packet)
{
    return r->options.ssrc && packet->ssrc == r->options.ssrc;
}

// Returns true if another SSRC may become ours: ours has been silent for longer than ever before. A
// camera may send one picture a second next to the rest of an older session.
static bool may_take_over(const struct rtp_receiver *r, const struct rtp_packet *packet)
{
    const int64_t enough_ns =
        bounds_min(bounds_max(2 * r->pause_ns, SILENCE_MIN_NS), SILENCE_MAX_NS);
    return r->statistics.parted || silent_ns(r, packet) >= enough_ns || is_announced(r, packet);
}

// Packets of an older session become ours only if nothing else arrives: a camera may begin to send
// before PLAY.
static bool is_left_over(struct rtp_receiver *r, const struct rtp_packet *packet)
{
    if (r->statistics.locked || !r->options.avoids || packet->ssrc != r->options.avoided ||
        is_announced(r, packet))
        return false;
    if (r->avoided_ns == 0)
        r->avoided_ns = packet->received_ns;
    return packet->received_ns - r->avoided_ns < SILENCE_MIN_NS;
}

// Some cameras change the SSRC with each group of pictures, and continue its numbers or begin new
// ones; the numbers of another sender are random. Their timestamps advance about like our clock:
// packets held back by a slow network or by ourselves arrive late or all at once. The next packet
// of the former SSRC undoes a wrong change.
static bool goes_on(const struct rtp_receiver *r, const struct rtp_packet *packet, bool by_numbers)
{
    const int numbers = numbers_ahead(r, packet);
    const int64_t stamp_ns = stamp_ahead_ns(r, packet);
    return r->statistics.locked && !r->mixes &&
           (by_numbers ? numbers > 0 && numbers <= GOES_ON_MAX : stamp_ns > 0) &&
           llabs(stamp_ns - silent_ns(r, packet)) <= SILENCE_MAX_NS;
}

// Returns true if the network repeated a packet of the former source, or delivered it after the
// first one of ours.
static bool is_late_of_left(const struct rtp_receiver *r, const struct rtp_packet *packet)
{
    const int numbers = (int16_t)(packet->sequence - r->left_sequence);
    const bool precedes = r->left_by_numbers
                              ? (int16_t)(packet->sequence - r->first_sequence) < 0
                              : (int32_t)(packet->timestamp - r->first_timestamp) < 0;
    return numbers <= 0 || (!r->options.ordered && numbers <= GOES_ON_MAX && precedes);
}

// `for_ns`: how long the former source may show that it is still sending.
static enum source change_source(struct rtp_receiver *r, const struct rtp_packet *packet,
                                 int64_t for_ns, bool by_numbers)
{
    r->statistics.source_changes += r->statistics.locked;
    r->left_ssrc = r->statistics.ssrc;
    r->left_sequence = (uint16_t)(r->highest - r->offset);
    r->left_until_ns = packet->received_ns + for_ns;
    r->left_by_numbers = by_numbers;
    r->statistics.locked = true;
    r->statistics.parted = false;
    r->statistics.ssrc = packet->ssrc;
    r->first_sequence = packet->sequence;
    r->first_timestamp = packet->timestamp;
    return by_numbers ? OURS : OURS_RESTARTED;
}

static enum source choose_source(struct rtp_receiver *r, const struct rtp_packet *packet)
{
    enum source source = OURS;
    const int64_t left_ns = bounds_max(LEFT_NS, 2 * r->pause_ns);
    const bool of_left = packet->ssrc == r->left_ssrc && packet->received_ns < r->left_until_ns;
    if (!has_our_type(r, packet->payload_type) || is_left_over(r, packet))
        return FOREIGN;
    if (r->statistics.locked && packet->ssrc == r->statistics.ssrc) {
        r->pause_ns = bounds_max(r->pause_ns, silent_ns(r, packet));
    } else if (of_left && is_late_of_left(r, packet)) {
        const bool again = is_seen(r, r->highest + numbers_ahead(r, packet));
        return r->left_by_numbers && !again ? OURS : FOREIGN;
    } else if (goes_on(r, packet, true)) {
        source = change_source(r, packet, left_ns, true);
    } else if (of_left) {
        r->mixes = true; // it is still sending: return to the first of two senders
        source = change_source(r, packet, 0, false);
    } else if (goes_on(r, packet, false)) {
        source = change_source(r, packet, left_ns, false);
    } else if (!r->statistics.locked || may_take_over(r, packet)) {
        source = change_source(r, packet, 0, false);
        r->pause_ns = 0;
    } else {
        return FOREIGN;
    }
    if (is_announced(r, packet))
        r->options.ssrc = 0; // a hint counts once
    r->heard_ns = packet->received_ns;
    return source;
}

// --- numbers

// Inserts a packet into a list by its number.
static void hold(struct rtp_held **list, struct rtp_held *held, int64_t number)
{
    held->number = number;
    while (*list && (*list)->number <= number)
        list = &(*list)->next;
    held->next = *list;
    *list = held;
}

static struct rtp_held *take_first(struct rtp_held **list)
{
    struct rtp_held *held = *list;
    *list = held->next;
    return held;
}

// Counts a packet as received. It may be the highest one.
static void note_packet(struct rtp_receiver *r, int64_t number, const struct rtp_packet *packet)
{
    if (number > r->highest) {
        for (int64_t i = bounds_max(r->highest, number - RTP_WINDOW) + 1; i < number; i++)
            r->seen[i % RTP_WINDOW] = false;
        r->highest = number;
        r->highest_timestamp = packet->timestamp;
        r->highest_ns = packet->received_ns;
        r->statistics.highest_sequence = (uint32_t)(number - r->offset);
        r->statistics.expected = (uint64_t)(number - RTP_WINDOW + 1);
    }
    r->seen[number % RTP_WINDOW] = true;
    r->statistics.packets++;
}

// Begins the first numbering or a new one.
static void begin_numbering(struct rtp_receiver *r, uint16_t sequence)
{
    // The first numbering begins at RTP_WINDOW, so that no number is ever negative.
    const int64_t number = r->highest ? r->highest + 1 : RTP_WINDOW;
    if (r->highest) {
        r->restart = number;
        r->statistics.restarts++;
    } else {
        r->next = number;
        r->highest = number - 1;
    }
    r->begun = true;
    r->first = number;
    r->offset = number - sequence;
}

// Accepts a packet that is neither a duplicate nor too late.
static void accept_packet(struct rtp_receiver *r, struct rtp_held *held, int64_t number)
{
    hold(&r->waiting, held, number);
    r->waiting_bytes += held->bytes;
    note_packet(r, number, &held->packet);
}

// Accepts the packets in `strays`, which begin another numbering.
static void restart_numbering(struct rtp_receiver *r)
{
    begin_numbering(r, r->strays->packet.sequence);
    const int64_t ahead = r->first - r->strays->number;
    while (r->strays) {
        struct rtp_held *held = take_first(&r->strays);
        accept_packet(r, held, held->number + ahead);
    }
    forget_strays(r);
}

// Keeps a packet outside the numbering, or too late for it (`near`). Enough of these near each
// other begin a new numbering.
static void put_stray(struct rtp_receiver *r, struct rtp_held *stray, bool near)
{
    const uint16_t sequence = stray->packet.sequence;
    int64_t number = sequence + 65536;
    if (r->strays) {
        number = r->strays->number + (int16_t)(sequence - (uint16_t)r->strays->number);
        if (llabs(number - r->strays->number) > STRAY_SPREAD)
            forget_strays(r);
    }
    for (const struct rtp_held *held = r->strays; held; held = held->next)
        if (held->number == number) {
            free(stray);
            return;
        }
    if (r->n_strays == STRAYS)
        free(take_first(&r->strays));
    else
        r->n_strays++;
    hold(&r->strays, stray, number);
    r->strays_in_row++;
    if (r->strays_in_row < (near ? NEAR_STRAYS : STRAYS))
        return;
    if (!near) // they were counted as late, but are not
        r->statistics.late -= (uint64_t)bounds_min((int64_t)r->statistics.late, r->n_strays);
    restart_numbering(r);
}

// Returns true if so many numbers can be missing: they are few, or the stream's time advanced like
// ours and left enough time to send them.
static bool is_plausible_loss(const struct rtp_receiver *r, const struct rtp_packet *packet,
                              int numbers)
{
    const int64_t ns = packet->received_ns - r->highest_ns;
    return numbers <= DROPOUT_MAX || (numbers <= DROPOUT_MAX + ns / PER_PACKET &&
                                      llabs(stamp_ahead_ns(r, packet) - ns) < SECOND);
}

static void place_packet(struct rtp_receiver *r, struct rtp_held *held)
{
    const int ahead = numbers_ahead(r, &held->packet);
    const int64_t number = r->highest + ahead;
    const bool late = ahead <= 0 && ahead > -RTP_WINDOW && !r->options.ordered;
    const bool seen = number >= r->first && is_seen(r, number);
    if (!r->begun) {
        forget_strays(r);
        begin_numbering(r, held->packet.sequence);
        accept_packet(r, held, r->first);
    } else if (ahead > 0 && is_plausible_loss(r, &held->packet, ahead)) {
        forget_strays(r);
        accept_packet(r, held, number);
    } else if (ahead == 0 && held->packet.timestamp == r->highest_timestamp) {
        r->statistics.duplicate++;
        free(held);
    } else if (late && !seen && number >= r->next) {
        forget_strays(r);
        r->statistics.reordered++;
        accept_packet(r, held, number);
    } else {
        r->statistics.duplicate += late && seen;
        r->statistics.late += !late || !seen;
        if (late && number >= r->first)
            r->seen[number % RTP_WINDOW] = true;
        put_stray(r, held, late);
    }
}

// --- the owner's calls

static void measure_jitter(struct rtp_receiver *r, const struct rtp_packet *packet)
{
    const int64_t ns = packet->received_ns, rate = r->clock_rate;
    const int64_t ticks = ns / SECOND * rate + ns % SECOND * rate / SECOND;
    const uint32_t transit = (uint32_t)ticks - packet->timestamp;
    const int64_t difference = llabs((int32_t)(transit - r->transit));
    if (r->begun && difference < rate) // a larger one means another clock
        r->jitter16 += (uint32_t)difference - ((r->jitter16 + 8) >> 4);
    r->transit = transit;
    r->statistics.jitter = r->jitter16 >> 4;
}

int rtp_receiver_put(struct rtp_receiver *r, const uint8_t *data, size_t bytes, int64_t now_ns)
{
    struct rtp_held *held = malloc(sizeof *held + bytes);
    if (!held)
        return -ENOMEM;
    memcpy(held->data, data, bytes);
    held->bytes = bytes;
    const bool parsed =
        !rtp_is_rtcp(data, bytes) && rtp_parse(&held->packet, held->data, bytes) == 0;
    held->packet.received_ns = now_ns;
    const enum source source = parsed ? choose_source(r, &held->packet) : FOREIGN;
    if (source == FOREIGN) {
        r->statistics.foreign++;
        free(held);
        return -EBADMSG;
    }
    if (source == OURS_RESTARTED)
        r->begun = false;
    measure_jitter(r, &held->packet);
    place_packet(r, held);
    return 0;
}

// Returns true if the first waiting packet waits for no other one. The highest one waits, too.
static bool is_ready(const struct rtp_receiver *r)
{
    return r->waiting->number == r->next || r->restart || r->options.ordered ||
           r->highest - r->next >= WAITING_MAX || r->waiting_bytes > WAITING_BYTES_MAX;
}

int64_t rtp_receiver_due_ns(const struct rtp_receiver *r)
{
    int64_t passed_ns = INT64_MAX - WAIT_NS;
    if (r->waiting && is_ready(r))
        return 0;
    for (const struct rtp_held *held = r->waiting; held; held = held->next)
        passed_ns = bounds_min(passed_ns, held->packet.received_ns);
    return passed_ns + WAIT_NS;
}

int rtp_receiver_get(struct rtp_receiver *r, int64_t now_ns, struct rtp_packet *ret)
{
    free(r->given);
    r->given = NULL;
    if (!r->waiting || rtp_receiver_due_ns(r) > now_ns)
        return -EAGAIN;
    const struct rtp_held *held = r->given = take_first(&r->waiting);
    const int64_t lost = held->number - r->next;
    r->waiting_bytes -= held->bytes;
    *ret = held->packet;
    ret->restarted = r->restart != 0 && held->number >= r->restart;
    ret->lost = (uint32_t)lost;
    ret->lost_unknown = ret->restarted || (r->lose && lost == 0);
    if (ret->restarted)
        r->restart = 0;
    r->lose = false;
    r->next = held->number + 1;
    r->statistics.lost += (uint64_t)lost;
    return 0;
}
