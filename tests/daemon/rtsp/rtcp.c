// Compound RTCP packets as cameras cut and fill them, our own packets, and the wall clock made of
// sender reports.
#include "daemon/rtsp/rtcp.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/rtsp/rtp_receiver.h"
#include "tests/test.h"

enum { SSRC = 0x11223344, OWN = 0xa0b0c0d0 };

static const int64_t SECOND = 1000000000, NOW = 5000000000,
                     REALTIME = 1795000000 * (int64_t)1000000000;
static const uint64_t IN_1970 = 2208988800; // NTP seconds

static const uint8_t sender_report[] = {0x80, 200, 0,    6, 0x11, 0x22, 0x33, 0x44, 0xeb, 0xcd,
                                        0xef, 1,   0x80, 0, 0,    0,    9,    8,    7,    6,
                                        0,    0,   0,    1, 0,    0,    0,    2};
static const uint8_t goodbye[] = {0x81, 203, 0, 1, 0x11, 0x22, 0x33, 0x44};
static const uint8_t description[] = {0x81, 202, 0,   3,   0x11, 0x22, 0x33, 0x44,
                                      1,    5,   'c', 'a', 'm',  'e',  'r',  0};

struct compound {
    uint8_t data[512];
    size_t bytes;
};

static void append(struct compound *compound, const uint8_t *packet, size_t bytes)
{
    memcpy(compound->data + compound->bytes, packet, bytes);
    compound->bytes += bytes;
}

static struct rtcp_events read_compound(const struct compound *compound)
{
    struct rtcp_events events;
    rtcp_read(&events, compound->data, compound->bytes, true, SSRC);
    return events;
}

static void reads_reports(void)
{
    struct compound compound = {0};
    append(&compound, sender_report, sizeof sender_report);
    struct rtcp_events events = read_compound(&compound);
    CHECK(events.report && events.ntp == 0xebcdef0180000000 && events.rtp == 0x09080706 &&
              events.ssrc == SSRC && !events.bye,
          "a sender report");
    append(&compound, description, sizeof description);
    append(&compound, goodbye, sizeof goodbye);
    events = read_compound(&compound);
    CHECK(events.report && events.bye, "what stands behind it");
    for (size_t bytes = 0; bytes < sizeof sender_report; bytes++) {
        rtcp_read(&events, compound.data, bytes, true, SSRC);
        CHECK(!events.report && !events.bye, "cut to %zu bytes", bytes);
    }
    compound.data[3] = 5; // shorter than a report is
    events = read_compound(&compound);
    CHECK(!events.report, "a short report");
}

static void keeps_reports_before_a_cut(void)
{
    struct compound compound = {0};
    append(&compound, sender_report, sizeof sender_report);
    append(&compound, description, sizeof description - 4); // lacks its end
    CHECK(read_compound(&compound).report, "a cut description");
    compound.bytes -= 10;
    CHECK(read_compound(&compound).report, "two bytes of it");
    append(&compound, (const uint8_t *)"\x40\xcb\x00\x01\x11\x22\x33\x44", 8);
    CHECK(!read_compound(&compound).bye, "another version");

    compound.bytes = 0;
    append(&compound, (const uint8_t *)"\x80\xc8\x00\x00", 4); // an empty report
    append(&compound, (const uint8_t *)"\x80\xcb\x00\x00", 4);
    append(&compound, goodbye, sizeof goodbye);
    struct rtcp_events events = read_compound(&compound);
    CHECK(!events.report && events.bye, "empty packets are skipped");
}

static void drops_what_others_say(void)
{
    struct rtcp_events events;
    struct compound compound = {0};
    append(&compound, sender_report, sizeof sender_report);
    append(&compound, goodbye, sizeof goodbye);
    rtcp_read(&events, compound.data, compound.bytes, true, SSRC + 1);
    CHECK(!events.report && !events.bye, "another sender's");
    rtcp_read(&events, compound.data, compound.bytes, false, SSRC);
    CHECK(events.report && events.ssrc == SSRC && !events.bye, "before the first packet");

    compound.bytes = 0;
    append(&compound, (const uint8_t *)"\x82\xcb\x00\x02\x01\x02\x03\x04\x11\x22\x33\x44", 12);
    CHECK(read_compound(&compound).bye, "ours is the second of two");
    compound.data[0] = 0x81;
    CHECK(!read_compound(&compound).bye, "one of another");
    compound.data[0] = 0x82;
    compound.data[3] = 1;
    CHECK(!read_compound(&compound).bye, "a count beyond the packet's end");
}

static uint32_t word(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

// Checks that the lengths of all packets add up.
static bool is_compound(const uint8_t *data, size_t bytes)
{
    size_t at = 0;
    while (at + 4 <= bytes && data[at] >> 6 == 2)
        at += 4 + 4 * ((size_t)data[at + 2] << 8 | data[at + 3]);
    return at == bytes;
}

static void writes_reports(void)
{
    uint8_t to[RTCP_REPORT_MAX];
    struct rtcp_receiver receiver = {.ssrc = OWN};
    struct rtp_statistics statistics = {.expected = 100,
                                        .lost = 25,
                                        .jitter = 77,
                                        .highest_sequence = 0x10064,
                                        .ssrc = SSRC,
                                        .locked = true};
    size_t bytes = rtcp_write(&receiver, &statistics, RTCP_REPORT, NOW, to);
    CHECK(is_compound(to, bytes) && bytes == 32 + 28, "%zu bytes", bytes);
    CHECK(word(to) == 0x81c90007 && word(to + 4) == OWN && word(to + 8) == SSRC, "its head");
    CHECK(word(to + 12) == (64u << 24 | 25), "a quarter is lost: %08x", word(to + 12));
    CHECK(word(to + 16) == 0x10064 && word(to + 20) == 77, "number and jitter");
    CHECK(word(to + 24) == 0 && word(to + 28) == 0, "no sender report yet");
    CHECK(word(to + 32) == 0x81ca0006 && word(to + 36) == OWN && to[40] == 1 && to[41] == 15 &&
              memcmp(to + 42, "framed-a0b0c0d0", 16) == 0,
          "our name");

    receiver.sr_ntp = 0x1122334455667788;
    receiver.sr_ns = NOW;
    statistics.expected = 300;
    statistics.lost = 26;
    bytes = rtcp_write(&receiver, &statistics, RTCP_REPORT, NOW + 5 * SECOND / 2, to);
    CHECK(word(to + 12) == (1u << 24 | 26), "1 of 200 since the last: %08x", word(to + 12));
    CHECK(word(to + 24) == 0x33445566 && word(to + 28) == 163840, "2.5 s since the report");

    statistics.expected = statistics.lost = 0x2000000;
    rtcp_write(&receiver, &statistics, RTCP_REPORT, NOW, to);
    CHECK(word(to + 12) == 0xff7fffff, "all are lost: %08x", word(to + 12));
    statistics.locked = false;
    bytes = rtcp_write(&receiver, &statistics, RTCP_REPORT, NOW, to);
    CHECK(is_compound(to, bytes) && word(to) == 0x80c90001, "nothing came yet");
}

static void asks_for_keyframes(void)
{
    uint8_t to[RTCP_REPORT_MAX];
    struct rtcp_receiver receiver = {.ssrc = OWN};
    const struct rtp_statistics statistics = {.ssrc = SSRC, .locked = true};
    size_t bytes = rtcp_write(&receiver, &statistics, RTCP_PICTURE_LOSS, NOW, to);
    CHECK(is_compound(to, bytes) && word(to + bytes - 12) == 0x81ce0002 &&
              word(to + bytes - 8) == OWN && word(to + bytes - 4) == SSRC,
          "picture loss indication");
    for (uint32_t i = 0; i < 300; i++) {
        bytes = rtcp_write(&receiver, &statistics, RTCP_FULL_INTRA, NOW, to);
        const uint8_t *p = to + bytes - 20;
        CHECK(is_compound(to, bytes) && word(p) == 0x84ce0004 && word(p + 4) == OWN &&
                  word(p + 8) == 0 && word(p + 12) == SSRC && word(p + 16) == (i & 255) << 24,
              "full intra request %u", i);
    }
}

static void says_goodbye(void)
{
    uint8_t to[RTCP_REPORT_MAX];
    struct rtcp_receiver receiver = {.ssrc = OWN};
    const struct rtp_statistics statistics = {.ssrc = SSRC, .locked = true};
    const size_t bytes = rtcp_write(&receiver, &statistics, RTCP_BYE, NOW, to);
    CHECK(is_compound(to, bytes) && word(to + bytes - 8) == 0x81cb0001 &&
              word(to + bytes - 4) == OWN,
          "goodbye");
    struct rtcp_events events;
    rtcp_read(&events, to, bytes, true, OWN);
    CHECK(events.bye && !events.report, "as another reads it");
}

// --- the wall clock

static uint64_t ntp_of(int64_t wall_ns)
{
    return ((uint64_t)(wall_ns / SECOND) + IN_1970) << 32 |
           ((uint64_t)(wall_ns % SECOND) << 32) / (uint64_t)SECOND;
}

// Reports `ns` after NOW; the camera's clock and the stream's are off by these amounts.
static bool report(struct rtcp_clock *clock, int64_t ns, int64_t wall_off_ns, int64_t rtp_off_ns)
{
    const struct rtcp_events events = {.report = true, .ntp = ntp_of(REALTIME + ns + wall_off_ns)};
    return rtcp_clock_report(clock, &events, ns + rtp_off_ns, REALTIME + ns);
}

static int64_t off_by(const struct rtcp_clock *clock, int64_t ns)
{
    return rtcp_clock_read(clock, ns) - (REALTIME + ns);
}

static bool is_about(int64_t ns, int64_t wanted_ns)
{
    return ns >= wanted_ns - 20000 && ns <= wanted_ns + 20000; // rounded to ticks
}

static void refuses_nonsense(void)
{
    struct rtcp_clock clock = {0};
    CHECK(rtcp_clock_read(&clock, 1) == INT64_MIN, "unknown");
    CHECK(!rtcp_clock_report(&clock, &(struct rtcp_events){.bye = true}, 0, REALTIME), "no report");
    const uint64_t refused[] = {0,
                                5ull << 32,
                                IN_1970 << 32,
                                ntp_of(1577836799 * SECOND),
                                ntp_of(REALTIME + 86401 * SECOND),
                                ntp_of(REALTIME - 86401 * SECOND),
                                UINT64_MAX};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const struct rtcp_events events = {.report = true, .ntp = refused[i]};
        CHECK(!rtcp_clock_report(&clock, &events, 0, REALTIME), "case %zu", i);
        CHECK(!clock.known, "case %zu", i);
    }
    CHECK(report(&clock, 0, 86399 * SECOND, 0) && clock.known, "almost a day ahead");
    const struct rtcp_events in_2019 = {.report = true, .ntp = ntp_of(1577836799 * SECOND)};
    clock = (struct rtcp_clock){0};
    CHECK(!rtcp_clock_report(&clock, &in_2019, 0, 1577836799 * SECOND), "both clocks are in 2019");
}

static void reads_the_next_era(void)
{
    struct rtcp_clock clock = {0};
    const int64_t in_2040 = 2208988800 * SECOND;
    const struct rtcp_events events = {.report = true, .ntp = ntp_of(in_2040)};
    CHECK(rtcp_clock_report(&clock, &events, 0, in_2040 + 5 * SECOND), "taken");
    CHECK(rtcp_clock_read(&clock, SECOND) == in_2040 + SECOND, "a second later");
}

static void goes_on_smoothly(void)
{
    struct rtcp_clock clock = {0};
    CHECK(report(&clock, 0, 3000 * SECOND, 0), "the first");
    CHECK(is_about(off_by(&clock, SECOND), 3000 * SECOND) &&
              is_about(off_by(&clock, -SECOND), 3000 * SECOND),
          "before and after it");
    int64_t before = off_by(&clock, 5 * SECOND);
    for (int i = 1; i < 200; i++) { // reports that are off by up to 40 ms, and drift by 100 ppm
        const int64_t ns = i * 5 * SECOND;
        CHECK(report(&clock, ns, 3000 * SECOND + ns / 10000 + i % 5 * 10000000, 0), "taken");
        const int64_t off = off_by(&clock, ns);
        CHECK(off - before <= 11000000 && before - off <= 11000000, "a leap by %lld ns",
              (long long)(off - before));
        before = off;
    }
    CHECK(before > 3000 * SECOND + 90000000 && before < 3000 * SECOND + 140000000,
          "it follows: %lld ns", (long long)before);
}

static void begins_anew_with_steps(void)
{
    struct rtcp_clock clock = {0};
    report(&clock, 0, 0, 0);
    report(&clock, 5 * SECOND, SECOND / 2 - 1000000, 0);
    CHECK(is_about(off_by(&clock, 5 * SECOND), (SECOND / 2 - 1000000) / 4),
          "less than half a second");
    clock = (struct rtcp_clock){0};
    report(&clock, 0, 0, 0);
    report(&clock, 5 * SECOND, SECOND / 2 + 1000000, 0);
    CHECK(is_about(off_by(&clock, 5 * SECOND), SECOND / 2 + 1000000), "half a second ahead");
    report(&clock, 10 * SECOND, 3600 * SECOND, 0);
    CHECK(is_about(off_by(&clock, 11 * SECOND), 3600 * SECOND), "an hour");
    report(&clock, 15 * SECOND, 0, 0);
    CHECK(is_about(off_by(&clock, 11 * SECOND), 0), "and back");
    report(&clock, 20 * SECOND, -20 * 365 * 86400 * SECOND, 0);
    CHECK(is_about(off_by(&clock, 21 * SECOND), 0), "nonsense between changes nothing");
}

static void begins_anew_when_the_rate_is_off(void)
{
    for (int direction = -1; direction <= 1; direction += 2) {
        struct rtcp_clock clock = {0};
        for (int64_t ns = 0; ns <= 5 * SECOND; ns += SECOND)
            report(&clock, ns, direction * ns / 50, 0); // 2 %
        CHECK(llabs(off_by(&clock, 5 * SECOND)) < 5 * SECOND / 50 - 10000000, "too short to tell");
        report(&clock, 11 * SECOND, direction * 11 * SECOND / 50, 0);
        CHECK(is_about(off_by(&clock, 11 * SECOND), direction * 11 * SECOND / 50), "2 %% off");
        clock = (struct rtcp_clock){0};
        for (int64_t ns = 0; ns <= 600 * SECOND; ns += 5 * SECOND)
            report(&clock, ns, direction * ns / 125, 0); // 0.8 %
        CHECK(llabs(off_by(&clock, 600 * SECOND)) < 600 * SECOND / 125 - 100000000, "0.8 %% off");
    }
}

int main(void)
{
    TEST(reads_reports());
    TEST(keeps_reports_before_a_cut());
    TEST(drops_what_others_say());
    TEST(writes_reports());
    TEST(asks_for_keyframes());
    TEST(says_goodbye());
    TEST(refuses_nonsense());
    TEST(reads_the_next_era());
    TEST(goes_on_smoothly());
    TEST(begins_anew_with_steps());
    TEST(begins_anew_when_the_rate_is_off());
    return test_end();
}
