#include "daemon/rtsp/rtp_receiver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"
#include "daemon/rtsp/rtp_source.h"

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

static const int64_t MS = 1000000, WAIT_FIRST = 20 * MS, WAIT_MIN = 5 * MS, WAIT_MAX = 100 * MS,
                     SECOND = 1000 * MS,
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
static void give(struct rtp_receiver *receiver, int64_t number, struct rtp_packet *packet)
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
        give(receiver, held->number, ret);
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
    give(receiver, receiver->last_number, ret);
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
