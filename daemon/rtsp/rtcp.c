#include "daemon/rtsp/rtcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"
#include "daemon/rtsp/rtp_receiver.h"

enum { SENDER_REPORT = 200, RECEIVER_REPORT, DESCRIPTION, GOODBYE, PAYLOAD_FEEDBACK = 206 };
enum { PICTURE_LOSS = 1, FULL_INTRA_REQUEST = 4 }; // formats of PAYLOAD_FEEDBACK
enum { CNAME = 1, HEADER = 8, SENDER_REPORT_BYTES = 28 };

static const int64_t SECOND = 1000000000, STEP_NS = SECOND / 2, BASE_MIN_NS = 10 * SECOND,
                     BASE_MAX_NS = 120 * SECOND, DAY_NS = 86400 * SECOND;
static const int64_t SECONDS_1900_TO_1970 = 2208988800, NTP_ERA = (int64_t)1 << 32,
                     IN_2020 = 1577836800;

// --- what senders report

void rtcp_read(struct rtcp_events *ret, const uint8_t *data, size_t bytes, bool locked,
               uint32_t ssrc)
{
    struct rtcp_events events = {0};
    size_t size;
    for (; bytes >= 4 && data[0] >> 6 == 2; data += size, bytes -= size) {
        size = 4 + 4 * big_endian_read(data + 2, 2);
        if (size > bytes)
            break;
        const bool ours = size >= HEADER && (!locked || big_endian_read(data + 4, 4) == ssrc);
        if (data[1] == SENDER_REPORT && ours && size >= SENDER_REPORT_BYTES) {
            events.report = true;
            events.ssrc = big_endian_read(data + 4, 4);
            events.ntp = big_endian_read(data + 8, 8);
            events.rtp = big_endian_read(data + 16, 4);
        }
        for (size_t i = 0; data[1] == GOODBYE && i < (data[0] & 31u) && 8 + 4 * i <= size; i++)
            events.bye |= locked && big_endian_read(data + 4 + 4 * i, 4) == ssrc;
    }
    *ret = events;
}

// --- what a receiver says

struct writer {
    uint8_t *at, *begin; // begin: of the current packet
};

static void put32(struct writer *writer, uint32_t value)
{
    for (int i = 24; i >= 0; i -= 8)
        *writer->at++ = (uint8_t)(value >> i);
}

static void begin_packet(struct writer *writer, int count, int type, uint32_t ssrc)
{
    writer->begin = writer->at;
    put32(writer, 0x80000000 | (uint32_t)count << 24 | (uint32_t)type << 16);
    put32(writer, ssrc);
}

static void end_packet(struct writer *writer)
{
    const size_t words = (size_t)(writer->at - writer->begin) / 4 - 1;
    writer->begin[2] = (uint8_t)(words >> 8);
    writer->begin[3] = (uint8_t)words;
}

void rtcp_receiver_note(struct rtcp_receiver *receiver, const struct rtcp_events *events,
                        int64_t now_ns)
{
    if (!events->report)
        return;
    receiver->sr_ntp = events->ntp;
    receiver->sr_ns = now_ns;
}

static void put_report_block(struct writer *writer, struct rtcp_receiver *receiver,
                             const struct rtp_statistics *statistics, int64_t now_ns)
{
    const uint64_t expected = statistics->expected - receiver->expected;
    const uint64_t lost = statistics->lost - receiver->lost;
    const uint64_t share = expected > 0 ? 256 * lost / expected : 0; // in 1/256
    const uint64_t all = statistics->lost < 0x7fffff ? statistics->lost : 0x7fffff;
    const int64_t since_ns = now_ns - receiver->sr_ns;
    put32(writer, statistics->ssrc);
    put32(writer, (uint32_t)((share < 255 ? share : 255) << 24 | all));
    put32(writer, statistics->highest_sequence);
    put32(writer, statistics->jitter);
    put32(writer, (uint32_t)(receiver->sr_ntp >> 16));
    put32(writer, receiver->sr_ntp
                      ? (uint32_t)(since_ns / SECOND * 65536 + since_ns % SECOND * 65536 / SECOND)
                      : 0);
    receiver->expected = statistics->expected;
    receiver->lost = statistics->lost;
}

// Writes a receiver report and our name, which begin every compound packet.
static void put_report(struct writer *writer, struct rtcp_receiver *receiver,
                       const struct rtp_statistics *statistics, int64_t now_ns)
{
    begin_packet(writer, statistics->locked, RECEIVER_REPORT, receiver->ssrc);
    if (statistics->locked)
        put_report_block(writer, receiver, statistics, now_ns);
    end_packet(writer);

    char name[32];
    const int length = snprintf(name, sizeof name, "framed-%08x", receiver->ssrc);
    begin_packet(writer, 1, DESCRIPTION, receiver->ssrc);
    *writer->at++ = CNAME;
    *writer->at++ = (uint8_t)length;
    memcpy(writer->at, name, (size_t)length);
    writer->at += length;
    do // a zero ends the list; more zeros pad the packet to whole words
        *writer->at++ = 0;
    while ((writer->at - writer->begin) % 4 != 0);
    end_packet(writer);
}

size_t rtcp_receiver_report(struct rtcp_receiver *receiver, const struct rtp_statistics *statistics,
                            int64_t now_ns, uint8_t *to)
{
    struct writer writer = {.at = to};
    put_report(&writer, receiver, statistics, now_ns);
    return (size_t)(writer.at - to);
}

size_t rtcp_keyframe_request(struct rtcp_receiver *receiver,
                             const struct rtp_statistics *statistics, bool fir, int64_t now_ns,
                             uint8_t *to)
{
    struct writer writer = {.at = to};
    put_report(&writer, receiver, statistics, now_ns);
    begin_packet(&writer, fir ? FULL_INTRA_REQUEST : PICTURE_LOSS, PAYLOAD_FEEDBACK,
                 receiver->ssrc);
    put32(&writer, fir ? 0 : statistics->ssrc);
    if (fir) {
        put32(&writer, statistics->ssrc);
        put32(&writer, (uint32_t)receiver->fir_sequence++ << 24);
    }
    end_packet(&writer);
    return (size_t)(writer.at - to);
}

size_t rtcp_bye(struct rtcp_receiver *receiver, const struct rtp_statistics *statistics,
                int64_t now_ns, uint8_t *to)
{
    struct writer writer = {.at = to};
    put_report(&writer, receiver, statistics, now_ns);
    begin_packet(&writer, 1, GOODBYE, receiver->ssrc);
    end_packet(&writer);
    return (size_t)(writer.at - to);
}

// --- the wall clock

static int64_t ticks_to_ns(int64_t ticks, int clock_rate)
{
    return ticks / clock_rate * SECOND + ticks % clock_rate * SECOND / clock_rate;
}

// Converts to ns since 1970, in the NTP era nearest to our clock: the seconds wrap in 2036.
static int64_t ntp_to_wall_ns(uint64_t ntp, int64_t realtime_ns)
{
    int64_t seconds = (int64_t)(ntp >> 32) - SECONDS_1900_TO_1970;
    while (seconds + NTP_ERA / 2 < realtime_ns / SECOND)
        seconds += NTP_ERA;
    return seconds * SECOND + (int64_t)((ntp & UINT32_MAX) * (uint64_t)SECOND >> 32);
}

static void begin_clock(struct rtcp_clock *clock, int64_t wall_ns, int64_t rtp)
{
    clock->wall_ns = clock->base_wall_ns = wall_ns;
    clock->rtp = clock->base_rtp = rtp;
}

bool rtcp_clock_report(struct rtcp_clock *clock, const struct rtcp_events *events,
                       int64_t rtp_unwrapped, int clock_rate, int64_t realtime_ns)
{
    const int64_t wall_ns = ntp_to_wall_ns(events->ntp, realtime_ns);
    if (!events->report || wall_ns < IN_2020 * SECOND || llabs(wall_ns - realtime_ns) > DAY_NS)
        return false;
    if (!clock->known) {
        clock->known = true;
        begin_clock(clock, wall_ns, rtp_unwrapped);
        return true;
    }
    const int64_t foretold_ns = rtcp_clock_read(clock, rtp_unwrapped, clock_rate);
    const int64_t off_ns = wall_ns - foretold_ns;
    // Measure the rate over at least 10 s: many cameras report the time of sending with the
    // previous picture's timestamp, which is 1 % of 5 s at 20 pictures a second.
    const int64_t stream_ns = ticks_to_ns(rtp_unwrapped - clock->base_rtp, clock_rate);
    const int64_t drift_ns = wall_ns - clock->base_wall_ns - stream_ns;
    if (llabs(off_ns) >= STEP_NS ||
        (stream_ns >= BASE_MIN_NS && llabs(drift_ns) > stream_ns / 100)) {
        begin_clock(clock, wall_ns, rtp_unwrapped);
        return true;
    }
    clock->wall_ns = foretold_ns + off_ns / 4;
    clock->rtp = rtp_unwrapped;
    if (stream_ns >= BASE_MAX_NS) {
        clock->base_wall_ns = wall_ns;
        clock->base_rtp = rtp_unwrapped;
    }
    return true;
}

int64_t rtcp_clock_read(const struct rtcp_clock *clock, int64_t rtp_unwrapped, int clock_rate)
{
    if (!clock->known)
        return INT64_MIN;
    return clock->wall_ns + ticks_to_ns(rtp_unwrapped - clock->rtp, clock_rate);
}
