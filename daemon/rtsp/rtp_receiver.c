#include "daemon/rtsp/rtp_receiver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"

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

// --- the source: cameras send other tracks on its channel, continue older sessions, and change the
// SSRC in the middle of a stream

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

enum {
    ADOPTED = 50,       // packets in a row that make another payload type ours
    NUMBERS_MAX = 16,   // maximum distance of numbers over a change of the SSRC
    RESTART_MIN = 1024, // a number lower by more is a restart, not a late packet
};

static const int64_t MS = 1000000, SECOND = 1000 * MS, SILENCE_MIN_NS = 500 * MS,
                     SILENCE_MAX_NS = 5000 * MS,
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

// Decides whether a packet belongs to our stream.
static enum rtp_source_verdict rtp_source_judge(struct rtp_source *source,
                                                const struct rtp_packet *packet,
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

// --- the receiver

enum {
    WAITING_MAX = 512,           // packets that wait behind a hole
    WAITING_BYTES_MAX = 4 << 20, // their total
    WINDOW = 1024,               // numbers below the highest that may still arrive late
    DROPOUT_MAX = 3000,          // numbers that may be missing in one hole, whatever the time
    ANEW_MAX = 4,                // packets kept of a possible new numbering
    ANEW = 3,                    // consecutive packets that prove a new numbering
    NEAR_ANEW = 32,              // packets that prove one if they may also be late ones
    ANEW_SPREAD = 32,            // distance of numbers within one new numbering
    ORDERLY = 10000,             // packets in order, after which none is waited for
    LATE_KNOWN = 50,             // late packets that show the longest delay to expect
};

static const int64_t WAIT_FIRST = 20 * MS, WAIT_MIN = 5 * MS, WAIT_MAX = 100 * MS,
                     PER_PACKET = MS / 50; // no camera sends packets faster than one in this time

struct held {
    struct rtp_packet packet;
    uint8_t *data; // NULL: empty
    size_t bytes;
    int64_t number;
};

struct rtp_receiver {
    struct rtp_receiver_options options;
    struct rtp_statistics statistics;

    // Packets have 64-bit numbers, which continue when a sender restarts its sequence. `offset` is
    // their distance to the sender's extended sequence numbers.
    int64_t first, next, highest; // of this numbering; next to return; of all received
    int64_t offset;
    bool begun; // these are valid
    uint32_t highest_timestamp;
    int64_t highest_ns;

    // Ready packets, in order of their numbers: waiting ones, then a new numbering's, then the last
    // one received, whose data is still the caller's.
    struct held *waiting; // [WAITING_MAX] by number; NULL: ordered
    int n_waiting;
    size_t waiting_bytes;
    struct held anew[ANEW_MAX];
    int n_anew, anew_in_row;
    bool restarting; // the packets in `anew` are ready
    struct rtp_packet last;
    int64_t last_number;
    bool has_last;
    int64_t restart; // first number after the sender's restart; 0: none
    bool lose;
    uint8_t *given; // data of the last packet returned

    int64_t seen_ns[WINDOW]; // arrival of each of the last numbers; 0: missing
    int64_t late_ns;         // longest delay of a late packet; 0: none so far
    int late_known;          // late packets counted for late_ns, LATE_KNOWN at most
    int in_order;            // packets since the last late one

    struct rtp_source source;
    uint32_t transit;
    uint32_t jitter16; // 16 times the jitter
};

int rtp_receiver_open(struct rtp_receiver **ret, const struct rtp_receiver_options *options)
{
    struct rtp_receiver *receiver = calloc(1, sizeof *receiver);
    if (!receiver)
        return -ENOMEM;
    receiver->options = *options;
    receiver->source = (struct rtp_source){.payload_type = options->payload_type,
                                           .other_video = options->other_video,
                                           .hinted = options->ssrc_hinted,
                                           .hint = options->ssrc,
                                           .avoids = options->ssrc_avoided,
                                           .avoided = options->avoided};
    if (options->other_codecs)
        memcpy(receiver->source.other_codecs, options->other_codecs,
               sizeof receiver->source.other_codecs);
    receiver->options.other_codecs = NULL;
    if (receiver->options.clock_rate <= 0)
        receiver->options.clock_rate = 90000;
    if (!options->ordered)
        receiver->waiting = calloc(WAITING_MAX, sizeof *receiver->waiting);
    if (!options->ordered && !receiver->waiting) {
        free(receiver);
        return -ENOMEM;
    }
    *ret = receiver;
    return 0;
}

void rtp_receiver_close(struct rtp_receiver *receiver)
{
    if (!receiver)
        return;
    for (int i = 0; receiver->waiting && i < WAITING_MAX; i++)
        free(receiver->waiting[i].data);
    for (int i = 0; i < receiver->n_anew; i++)
        free(receiver->anew[i].data);
    free(receiver->waiting);
    free(receiver->given);
    free(receiver);
}

// --- packets out of order

static struct held *waiting_slot(const struct rtp_receiver *receiver, int64_t number)
{
    return &receiver->waiting[number % WAITING_MAX];
}

static int64_t *seen(struct rtp_receiver *receiver, int64_t number)
{
    return &receiver->seen_ns[number % WINDOW];
}

static int64_t longest_wait_ns(const struct rtp_receiver *receiver)
{
    if (receiver->options.ordered || receiver->in_order >= ORDERLY)
        return 0;
    const int64_t least_ns = receiver->late_known < LATE_KNOWN ? WAIT_FIRST : WAIT_MIN;
    return bounds_min(bounds_max(2 * receiver->late_ns, least_ns), WAIT_MAX);
}

static int64_t first_waiting(const struct rtp_receiver *receiver)
{
    int64_t number = receiver->next;
    while (!waiting_slot(receiver, number)->data)
        number++;
    return number;
}

// Returns when the first packet with a number above `number` arrived.
static int64_t passed_ns(const struct rtp_receiver *receiver, int64_t number)
{
    int64_t ns = INT64_MAX;
    for (number = bounds_max(number + 1, receiver->first); number <= receiver->highest; number++)
        if (receiver->seen_ns[number % WINDOW] != 0)
            ns = bounds_min(ns, receiver->seen_ns[number % WINDOW]);
    return ns;
}

// Returns true if a picture that begins behind the hole is complete: all packets from the hole to
// its marker have arrived.
static bool picture_behind_hole(const struct rtp_receiver *receiver, int64_t number)
{
    const struct held *held = waiting_slot(receiver, number);
    const uint32_t timestamp = held->packet.timestamp;
    for (; held->data && held->number == number; held = waiting_slot(receiver, ++number))
        if (held->packet.marker && held->packet.timestamp != timestamp)
            return true;
    return false;
}

static int hold(struct held *held, const struct rtp_packet *packet, const uint8_t *data,
                size_t bytes, int64_t number)
{
    uint8_t *copy = malloc(bytes);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, data, bytes);
    *held = (struct held){.packet = *packet, .data = copy, .bytes = bytes, .number = number};
    held->packet.payload = copy + (packet->payload - data);
    if (packet->extension)
        held->packet.extension = copy + (packet->extension - data);
    return 0;
}

// --- numbers

static void forget_anew(struct rtp_receiver *receiver)
{
    for (int i = 0; i < receiver->n_anew; i++)
        free(receiver->anew[i].data);
    receiver->n_anew = receiver->anew_in_row = 0;
}

static void advance_highest(struct rtp_receiver *receiver, int64_t number,
                            const struct rtp_packet *packet)
{
    if (number - receiver->highest >= WINDOW)
        memset(receiver->seen_ns, 0, sizeof receiver->seen_ns);
    for (int64_t i = bounds_max(receiver->highest + 1, number - WINDOW + 1); i <= number; i++)
        *seen(receiver, i) = 0;
    receiver->highest = number;
    receiver->highest_timestamp = packet->timestamp;
    receiver->highest_ns = packet->received_ns;
}

// Begins the first numbering or a new one.
static void begin_numbering(struct rtp_receiver *receiver, uint16_t sequence)
{
    // The first numbering begins at WINDOW, so that no number is ever negative.
    const int64_t number = receiver->highest ? receiver->highest + 1 : WINDOW;
    if (receiver->highest) {
        receiver->restart = number;
        receiver->statistics.restarts++;
    } else {
        receiver->next = number;
        receiver->highest = number - 1;
    }
    receiver->begun = true;
    receiver->first = number;
    receiver->offset = number - sequence;
}

// Accepts a packet that is neither a duplicate nor too late. A packet in order is ready at once.
static int accept_packet(struct rtp_receiver *receiver, int64_t number,
                         const struct rtp_packet *packet, const uint8_t *data, size_t bytes)
{
    if (number > receiver->highest)
        advance_highest(receiver, number, packet);
    const int64_t wait_ns = longest_wait_ns(receiver);
    const bool full = number - receiver->next >= WAITING_MAX ||
                      receiver->waiting_bytes + bytes > WAITING_BYTES_MAX;
    if (number == receiver->next || number == receiver->restart || wait_ns == 0 || full) {
        receiver->last = *packet;
        receiver->last_number = number;
        receiver->has_last = true;
    } else {
        int rc = hold(waiting_slot(receiver, number), packet, data, bytes, number);
        if (rc < 0)
            return rc;
        receiver->n_waiting++;
        receiver->waiting_bytes += bytes;
    }
    *seen(receiver, number) = bounds_max(packet->received_ns, 1);
    receiver->statistics.packets++;
    if (receiver->in_order < ORDERLY && ++receiver->in_order == ORDERLY)
        receiver->late_ns = receiver->late_known = 0;
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    const int64_t x = ((const struct held *)a)->number, y = ((const struct held *)b)->number;
    return (x > y) - (x < y);
}

// Sorts `anew`, and returns true if three of its packets are consecutive.
static bool three_in_a_row(struct rtp_receiver *receiver)
{
    const struct held *anew = receiver->anew;
    bool found = false;
    qsort(receiver->anew, (size_t)receiver->n_anew, sizeof *anew, compare_numbers);
    for (int i = 0; i + ANEW <= receiver->n_anew; i++)
        found |=
            anew[i + 1].number == anew[i].number + 1 && anew[i + 2].number == anew[i].number + 2;
    return found;
}

// Keeps a packet outside the numbering, or too late for it (`near`). Enough of these in a row begin
// a new numbering.
static int put_anew(struct rtp_receiver *receiver, const struct rtp_packet *packet,
                    const uint8_t *data, size_t bytes, bool near)
{
    struct held *anew = receiver->anew;
    int64_t number = packet->sequence + 65536;
    if (receiver->n_anew > 0) {
        number = anew[0].number + (int16_t)(packet->sequence - (uint16_t)anew[0].number);
        if (llabs(number - anew[0].number) > ANEW_SPREAD)
            forget_anew(receiver);
    }
    for (int i = 0; i < receiver->n_anew; i++)
        if (anew[i].number == number)
            return 0;
    if (receiver->n_anew == ANEW_MAX) {
        free(anew[0].data);
        memmove(anew, anew + 1, (ANEW_MAX - 1) * sizeof *anew);
        receiver->n_anew--;
    }
    int rc = hold(&anew[receiver->n_anew], packet, data, bytes, number);
    if (rc < 0)
        return rc;
    receiver->n_anew++;
    receiver->anew_in_row++;
    if (!three_in_a_row(receiver) || (near && receiver->anew_in_row < NEAR_ANEW))
        return 0;

    begin_numbering(receiver, anew[0].packet.sequence);
    const int64_t ahead = receiver->first - anew[0].number;
    for (int i = 0; i < receiver->n_anew; i++) {
        anew[i].number += ahead;
        advance_highest(receiver, anew[i].number, &anew[i].packet);
        *seen(receiver, anew[i].number) = bounds_max(anew[i].packet.received_ns, 1);
    }
    receiver->statistics.packets += (uint64_t)receiver->n_anew;
    if (!near) // they were counted as late, but are not
        receiver->statistics.late -=
            (uint64_t)bounds_min((int64_t)receiver->statistics.late, receiver->n_anew);
    receiver->restarting = true;
    return 0;
}

// Returns true if so many numbers can be missing: they are few, or the stream's time advanced like
// ours and left enough time to send them.
static bool is_plausible_loss(const struct rtp_receiver *receiver, const struct rtp_packet *packet,
                              int numbers)
{
    const int64_t ns = packet->received_ns - receiver->highest_ns;
    const int64_t ticks = (int32_t)(packet->timestamp - receiver->highest_timestamp);
    return numbers <= DROPOUT_MAX ||
           (numbers <= DROPOUT_MAX + ns / PER_PACKET &&
            llabs(ticks * SECOND / receiver->options.clock_rate - ns) < SECOND);
}

static int place_packet(struct rtp_receiver *receiver, const struct rtp_packet *packet,
                        const uint8_t *data, size_t bytes)
{
    struct rtp_statistics *statistics = &receiver->statistics;
    if (!receiver->begun) {
        forget_anew(receiver);
        begin_numbering(receiver, packet->sequence);
        return accept_packet(receiver, receiver->first, packet, data, bytes);
    }
    const uint16_t highest = (uint16_t)(receiver->highest - receiver->offset);
    const int ahead = (int16_t)(packet->sequence - highest);
    const int64_t number = receiver->highest + ahead;
    if (ahead > 0 && is_plausible_loss(receiver, packet, ahead)) {
        forget_anew(receiver);
        return accept_packet(receiver, number, packet, data, bytes);
    }
    if (ahead == 0 && packet->timestamp == receiver->highest_timestamp) {
        statistics->duplicate++;
        return 0;
    }
    if (receiver->options.ordered || ahead > 0 || ahead <= -WINDOW) {
        statistics->late++;
        return put_anew(receiver, packet, data, bytes, false);
    }
    if (number >= receiver->first && *seen(receiver, number)) {
        statistics->duplicate++;
        return put_anew(receiver, packet, data, bytes, true);
    }
    const int64_t delay_ns = packet->received_ns - passed_ns(receiver, number);
    receiver->late_ns = bounds_max(receiver->late_ns, bounds_max(delay_ns, 1));
    receiver->late_known += receiver->late_known < LATE_KNOWN;
    receiver->in_order = 0;
    if (number >= receiver->next) {
        forget_anew(receiver);
        statistics->reordered++;
        return accept_packet(receiver, number, packet, data, bytes);
    }
    statistics->late++;
    if (number >= receiver->first)
        *seen(receiver, number) = bounds_max(packet->received_ns, 1);
    return put_anew(receiver, packet, data, bytes, true);
}

static void measure_jitter(struct rtp_receiver *receiver, const struct rtp_packet *packet)
{
    const int64_t ns = packet->received_ns, rate = receiver->options.clock_rate;
    const int64_t ticks = ns / SECOND * rate + ns % SECOND * rate / SECOND;
    const uint32_t transit = (uint32_t)ticks - packet->timestamp;
    const int64_t difference = llabs((int32_t)(transit - receiver->transit));
    if (receiver->begun && difference < rate) // a larger one means another clock
        receiver->jitter16 += (uint32_t)difference - ((receiver->jitter16 + 8) >> 4);
    receiver->transit = transit;
}

static struct rtp_advance measure_advance(struct rtp_receiver *receiver,
                                          const struct rtp_packet *packet)
{
    struct rtp_advance advance = {.known = receiver->begun, .reorders = !receiver->options.ordered};
    if (!receiver->begun)
        return advance;
    const uint16_t highest = (uint16_t)(receiver->highest - receiver->offset);
    const int64_t ticks = (int32_t)(packet->timestamp - receiver->highest_timestamp);
    advance.numbers = (int16_t)(packet->sequence - highest);
    advance.stamp_ns = ticks * SECOND / receiver->options.clock_rate;
    advance.repeated = advance.numbers <= 0 && advance.numbers > -WINDOW &&
                       *seen(receiver, receiver->highest + advance.numbers);
    return advance;
}

int rtp_receiver_put(struct rtp_receiver *receiver, const uint8_t *data, size_t bytes,
                     int64_t now_ns)
{
    struct rtp_packet packet;
    if (receiver->has_last || receiver->restarting)
        return -EBUSY;
    int rc = rtp_parse(&packet, data, bytes);
    packet.received_ns = now_ns;
    enum rtp_source_verdict verdict = RTP_FOREIGN;
    if (rc == 0 && !rtp_is_rtcp(data, bytes)) {
        const struct rtp_advance advance = measure_advance(receiver, &packet);
        verdict = rtp_source_judge(&receiver->source, &packet, &advance);
    }
    if (verdict == RTP_FOREIGN) {
        receiver->statistics.foreign++;
        return -EBADMSG;
    }
    if (verdict == RTP_OURS_RESTARTED)
        receiver->begun = false;
    measure_jitter(receiver, &packet);
    return place_packet(receiver, &packet, data, bytes);
}

// Fills in the packet's loss and restart, before it is returned.
static void give_packet(struct rtp_receiver *receiver, int64_t number, struct rtp_packet *packet)
{
    const int64_t lost = number - receiver->next;
    if (receiver->restart != 0 && number >= receiver->restart) {
        receiver->restart = 0;
        packet->restarted = packet->lost_unknown = true;
    }
    packet->lost_unknown |= receiver->lose && lost == 0;
    receiver->lose = false;
    receiver->next = number + 1;
    packet->lost = (uint32_t)lost;
    receiver->statistics.lost += (uint64_t)lost;
}

int rtp_receiver_get(struct rtp_receiver *receiver, int64_t now_ns, struct rtp_packet *ret)
{
    free(receiver->given);
    receiver->given = NULL;
    struct held *held = NULL;
    if (receiver->n_waiting > 0) {
        const int64_t number = first_waiting(receiver);
        held = waiting_slot(receiver, number);
        if (receiver->has_last && receiver->last_number < number)
            held = NULL;
        else if (number != receiver->next && !receiver->has_last && !receiver->restarting &&
                 !picture_behind_hole(receiver, number) && now_ns < rtp_receiver_due_ns(receiver))
            return -EAGAIN;
    }
    if (held) {
        receiver->n_waiting--;
        receiver->waiting_bytes -= held->bytes;
    } else if (receiver->restarting) {
        held = &receiver->anew[0];
    }
    if (held) {
        *ret = held->packet;
        give_packet(receiver, held->number, ret);
        receiver->given = held->data;
        held->data = NULL;
        if (held == receiver->anew) {
            memmove(held, held + 1, (ANEW_MAX - 1) * sizeof *held);
            receiver->restarting = --receiver->n_anew > 0;
            receiver->anew_in_row = 0;
        }
        return 0;
    }
    if (!receiver->has_last)
        return -EAGAIN;
    *ret = receiver->last;
    give_packet(receiver, receiver->last_number, ret);
    receiver->has_last = false;
    return 0;
}

int64_t rtp_receiver_due_ns(const struct rtp_receiver *receiver)
{
    if (receiver->has_last || receiver->restarting)
        return 0;
    if (receiver->n_waiting == 0)
        return INT64_MAX;
    return passed_ns(receiver, receiver->next) + longest_wait_ns(receiver);
}

void rtp_receiver_lose(struct rtp_receiver *receiver)
{
    receiver->lose = true;
}

void rtp_receiver_part(struct rtp_receiver *receiver)
{
    receiver->source.parted = true;
}

struct rtp_statistics rtp_receiver_statistics(const struct rtp_receiver *receiver)
{
    struct rtp_statistics statistics = receiver->statistics;
    statistics.locked = receiver->source.locked;
    statistics.parted = receiver->source.parted;
    statistics.ssrc = receiver->source.ssrc;
    statistics.source_changes = receiver->source.changes;
    statistics.jitter = receiver->jitter16 >> 4;
    if (receiver->highest) {
        statistics.highest_sequence = (uint32_t)(receiver->highest - receiver->offset);
        statistics.expected = (uint64_t)(receiver->highest - WINDOW + 1);
    }
    return statistics;
}
