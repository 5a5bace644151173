// Any RTCP packets: events are of the right sender, the resulting clock stays near ours, and our
// reports are compound packets.
//
// The first byte tells if the SSRC, 0x11223344, is known. Packets follow, each after two bytes: its
// length, and the seconds since the one before.
#include <stdlib.h>
#include <string.h>

#include "daemon/rtsp/rtcp.h"
#include "daemon/rtsp/rtp_receiver.h"
#include "tests/fuzz/turns.h"

enum { SSRC = 0x11223344 };

static const int64_t SECOND = 1000000000, TICK_NS = 11111, REALTIME = 1795000000000000000;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_compound(const uint8_t *data, size_t bytes)
{
    size_t at = 0;
    MUST(bytes <= RTCP_REPORT_MAX && data[1] == 201);
    while (at + 4 <= bytes && data[at] >> 6 == 2)
        at += 4 + 4 * ((size_t)data[at + 2] << 8 | data[at + 3]);
    MUST(at == bytes);
}

static void check_clock(struct rtcp_clock *clock, const struct rtcp_events *events, int64_t now_ns)
{
    const struct rtcp_clock before = *clock;
    const bool taken =
        rtcp_clock_report(clock, events, (int32_t)events->rtp * TICK_NS, REALTIME + now_ns);
    const int64_t wall_ns = rtcp_clock_read(clock, (int32_t)events->rtp * TICK_NS);
    MUST(!taken || events->report);
    MUST(taken || memcmp(&before, clock, sizeof before) == 0);
    MUST(!taken || llabs(wall_ns - REALTIME - now_ns) <= 86401 * SECOND);
    MUST(clock->known == (wall_ns != INT64_MIN));
}

static void check_answers(struct rtcp_receiver *receiver, const struct rtp_statistics *statistics,
                          int64_t now_ns)
{
    uint8_t to[RTCP_REPORT_MAX];
    check_compound(to, rtcp_write(receiver, statistics, RTCP_REPORT, now_ns, to));
    check_compound(to, rtcp_write(receiver, statistics, RTCP_PICTURE_LOSS, now_ns, to));
    check_compound(to, rtcp_write(receiver, statistics, RTCP_FULL_INTRA, now_ns, to));
    check_compound(to, rtcp_write(receiver, statistics, RTCP_BYE, now_ns, to));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const bool locked = data[0] & 1;
    struct rtcp_receiver receiver = {.ssrc = 1};
    struct rtp_statistics statistics = {.ssrc = SSRC, .locked = locked};
    struct rtcp_clock clock = {0};
    int64_t now_ns = SECOND;
    data++;
    size--;
    while (size >= 2) {
        const size_t left = size - 2, bytes = data[0] < left ? data[0] : left;
        now_ns += data[1] * SECOND;
        uint8_t *packet = malloc(bytes ? bytes : 1); // exact size, for sanitizers
        memcpy(packet, data + 2, bytes);
        struct rtcp_events events;
        rtcp_read(&events, packet, bytes, locked, SSRC);
        MUST(!events.report || !locked || events.ssrc == SSRC);
        MUST(locked || !events.bye);
        MUST(bytes >= 28 || !events.report);
        MUST(bytes >= 8 || !events.bye);
        free(packet);
        receiver.sr_ntp = events.ntp;
        receiver.sr_ns = now_ns;
        check_clock(&clock, &events, now_ns);
        statistics.expected += bytes;
        statistics.lost += bytes / 4;
        check_answers(&receiver, &statistics, now_ns);
        data += 2 + bytes;
        size = left - bytes;
    }
    return 0;
}
