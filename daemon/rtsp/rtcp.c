#include "daemon/rtsp/rtcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"
#include "daemon/rtsp/rtp_receiver.h"

enum { SENDER_REPORT = 200, RECEIVER_REPORT, DESCRIPTION, GOODBYE, PAYLOAD_FEEDBACK = 206 };
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

size_t rtcp_write(struct rtcp_receiver *receiver, const struct rtp_statistics *statistics,
                  enum rtcp_kind kind, int64_t now_ns, uint8_t *to)
{
    static const struct {
        int count, type; // count: the format of PAYLOAD_FEEDBACK
    } heads[] = {[RTCP_PICTURE_LOSS] = {1, PAYLOAD_FEEDBACK},
                 [RTCP_FULL_INTRA] = {4, PAYLOAD_FEEDBACK},
                 [RTCP_BYE] = {1, GOODBYE}};
    struct writer writer = {.at = to};
    put_report(&writer, receiver, statistics, now_ns);
    if (kind == RTCP_REPORT)
        return (size_t)(writer.at - to);
    begin_packet(&writer, heads[kind].count, heads[kind].type, receiver->ssrc);
    if (kind == RTCP_PICTURE_LOSS)
        put32(&writer, statistics->ssrc);
    if (kind == RTCP_FULL_INTRA) {
        put32(&writer, 0);
        put32(&writer, statistics->ssrc);
        put32(&writer, (uint32_t)receiver->fir_sequence++ << 24);
    }
    end_packet(&writer);
    return (size_t)(writer.at - to);
}

// --- the wall clock

// Converts to ns since 1970, in the NTP era nearest to our clock: the seconds wrap in 2036.
static int64_t ntp_to_wall_ns(uint64_t ntp, int64_t realtime_ns)
{
    int64_t seconds = (int64_t)(ntp >> 32) - SECONDS_1900_TO_1970;
    while (seconds + NTP_ERA / 2 < realtime_ns / SECOND)
        seconds += NTP_ERA;
    return seconds * SECOND + (int64_t)((ntp & UINT32_MAX) * (uint64_t)SECOND >> 32);
}

bool rtcp_clock_report(struct rtcp_clock *clock, const struct rtcp_events *events,
                       int64_t stream_ns, int64_t realtime_ns)
{
    const int64_t wall_ns = ntp_to_wall_ns(events->ntp, realtime_ns);
    if (!events->report || wall_ns < IN_2020 * SECOND || llabs(wall_ns - realtime_ns) > DAY_NS)
        return false;
    const int64_t ahead_ns = wall_ns - stream_ns, step_ns = ahead_ns - clock->ahead_ns;
    // Measure the rate over at least 10 s: many cameras report the time of sending with the
    // previous picture's timestamp, which is 1 % of 5 s at 20 pictures a second.
    const int64_t since_ns = stream_ns - clock->base_ns, drift_ns = ahead_ns - clock->base_ahead_ns;
    const bool begins = !clock->known || llabs(step_ns) >= STEP_NS ||
                        (since_ns >= BASE_MIN_NS && llabs(drift_ns) > since_ns / 100);
    clock->known = true;
    clock->ahead_ns = begins ? ahead_ns : clock->ahead_ns + step_ns / 4;
    if (begins || since_ns >= BASE_MAX_NS) {
        clock->base_ns = stream_ns;
        clock->base_ahead_ns = ahead_ns;
    }
    return true;
}

int64_t rtcp_clock_read(const struct rtcp_clock *clock, int64_t stream_ns)
{
    return clock->known ? stream_ns + clock->ahead_ns : INT64_MIN;
}
