// The pause after a camera's failure, by kind of failure.
#include "daemon/camera/outage.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "tests/test.h"

static const int64_t SECOND = 1000000000;

// Returns the whole seconds until the next attempt after two failures with `rc`.
static int second_wait_s(const char *url, int rc, struct login_pause *logins)
{
    struct outage outage;
    const struct demux_memory memory = {0};
    int64_t next_ns = 0;
    outage_open(&outage, url, logins);
    for (int i = 0; i < 2; i++)
        next_ns = outage_begin(&outage, rc, "it failed", &memory);
    return (int)(next_ns / SECOND);
}

static void test_waits(void)
{
    static const struct {
        const char *url;
        int rc, least_s, most_s;
    } cases[] = {
        {"rtsp://u:p@192.0.2.1/", -EACCES, 590, 1800},  {"rtsp://192.0.2.1/", -EACCES, 30, 32},
        {"http://u:p@192.0.2.1/", -EACCES, 30, 32}, // by libavformat, which has no such pauses
        {"rtsp://u:p@192.0.2.1/", -EPERM, 30, 32},  // 403 is not about the password
        {"rtsp://u:p@192.0.2.1/", -ECONNREFUSED, 0, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct login_pause *logins;
        if (login_pause_open(&logins, NULL, monotonic_ns(), realtime_ns()) < 0)
            abort();
        const int seconds = second_wait_s(cases[i].url, cases[i].rc, logins);
        CHECK(seconds >= cases[i].least_s && seconds <= cases[i].most_s, "%s, %d: %d s",
              cases[i].url, cases[i].rc, seconds);
        login_pause_close(logins);
    }
}

// Returns true if the outage, after `failures`, is logged as over at a picture `after_ns` after the
// first.
static bool is_over(struct outage *outage, int failures, int64_t after_ns)
{
    const struct demux_memory memory = {0};
    outage_open(outage, "rtsp://192.0.2.1/", NULL);
    for (int i = 0; i < failures; i++)
        outage_begin(outage, -ECONNREFUSED, "it failed", &memory);
    outage_end(outage);
    outage->running_ns -= after_ns;
    return outage_is_over(outage);
}

// If failures are no longer logged one by one, the end is logged once.
static void test_end_is_told(void)
{
    struct outage outage;
    CHECK(!is_over(&outage, 6, 11 * SECOND), "said though each failure was logged");
    CHECK(!is_over(&outage, 7, 9 * SECOND) && outage_is_quiet(&outage), "said after 9 s");
    CHECK(is_over(&outage, 7, 11 * SECOND), "not said");
    CHECK(!outage_is_over(&outage) && !outage_is_quiet(&outage), "said twice");
}

// A full camera may keep a session of ours until it expires: an attempt comes right after that,
// regardless of the other attempts' intervals.
static void test_no_room(void)
{
    static const struct {
        int session_s; // as the camera reported it
        int passed_s;  // since its first refusal
        int least_s, most_s;
    } cases[] = {{20, 0, 20, 22}, {0, 40, 24, 27}, {0, 60, 4, 7}, {0, 70, 35, 55}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outage outage;
        struct demux_memory memory = {.rtsp.session_s = cases[i].session_s};
        int64_t next_ns = 0;
        outage_open(&outage, "rtsp://192.0.2.1/", NULL);
        for (int n = 0; n < 15; n++) {
            next_ns = outage_begin(&outage, -EUSERS, "453", &memory);
            outage.room_ns -= n == 0 ? cases[i].passed_s * SECOND : 0;
        }
        CHECK(next_ns >= cases[i].least_s * SECOND && next_ns <= cases[i].most_s * SECOND,
              "case %zu: %.1f s", i, (double)next_ns / 1e9);
        outage_end(&outage);
        outage_begin(&outage, -EUSERS, "453", &memory);
        CHECK(outage.room_ns > monotonic_ns() + 19 * SECOND, "case %zu: the next outage", i);
    }
}

int main(void)
{
    TEST(test_no_room());
    TEST(test_waits());
    TEST(test_end_is_told());
    return test_end();
}
