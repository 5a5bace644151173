// Stream facts from packets: keyframe distances over rewinds and connections, and a clock that is
// off, jitters, or comes without a report.
#include "daemon/camera/camera_report.h"

#include <stdlib.h>

#include "daemon/source/demux.h"
#include "tests/test.h"

static const int64_t MS = 1000000, CAME = INT64_C(1760000000000000000);

static void key(struct camera_report *report, int64_t pts_ms)
{
    const struct packet packet = {
        .bytes = 100, .keyframe = true, .pts_ns = pts_ms < 0 ? INT64_MIN : pts_ms * MS};
    camera_report_packet(report, &packet, CAME);
}

static void expect_distance(const struct camera_report *report, int64_t ms)
{
    CHECK(atomic_load(&report->keyframe_ns) == ms * MS, "%lld ns between keyframes, not %lld ms",
          (long long)atomic_load(&report->keyframe_ns), (long long)ms);
}

static void test_keyframes(void)
{
    struct camera_report report = {0};
    camera_report_connect(&report);
    const struct packet between = {.bytes = 7, .pts_ns = 500 * MS};
    key(&report, 0);
    expect_distance(&report, 0);
    camera_report_packet(&report, &between, CAME);
    key(&report, 2000);
    expect_distance(&report, 2000);
    key(&report, 5000);
    expect_distance(&report, 3000);
    key(&report, 0); // the file again
    expect_distance(&report, 3000);
    key(&report, 2000);
    expect_distance(&report, 2000);
    key(&report, -1); // the stream gives no time
    key(&report, 9000);
    expect_distance(&report, 2000);
    camera_report_connect(&report);
    key(&report, 99000);
    expect_distance(&report, 2000);
    CHECK(atomic_load(&report.bytes) == 8 * 100 + 7, "%llu bytes",
          (unsigned long long)atomic_load(&report.bytes));
}

static void at(struct camera_report *report, int64_t off_ns, bool clock)
{
    const struct packet packet = {.capture_ns = CAME + off_ns, .capture_clock = clock};
    camera_report_packet(report, &packet, CAME);
}

static void expect_clock(const struct camera_report *report, int64_t offset_ns, int64_t jitter_ns)
{
    const int64_t offset = atomic_load(&report->offset_ns),
                  jitter = atomic_load(&report->jitter_ns);
    CHECK(atomic_load(&report->has_clock), "no clock");
    CHECK(llabs(offset - offset_ns) < MS / 2 && llabs(jitter - jitter_ns) < MS / 2,
          "offset %lld, jitter %lld ns", (long long)offset, (long long)jitter);
}

static void test_clock(void)
{
    struct camera_report report = {0};
    camera_report_connect(&report);
    at(&report, -3000 * MS, false);
    CHECK(!atomic_load(&report.has_clock), "a clock without reports");
    at(&report, -35 * MS, true);
    expect_clock(&report, -35 * MS, 0);
    for (int i = 0; i < 1000; i++)
        at(&report, (i % 2 ? -30 : -40) * MS, true);
    expect_clock(&report, -35 * MS, 5 * MS);
    at(&report, -3000 * MS, false); // by its arrival
    expect_clock(&report, -35 * MS, 5 * MS);
    for (int i = 0; i < 1000; i++)
        at(&report, 1200 * MS, true);
    expect_clock(&report, 1200 * MS, 0);
    camera_report_connect(&report);
    CHECK(!atomic_load(&report.has_clock), "the clock of a connection before");
    at(&report, 7 * MS, true);
    expect_clock(&report, 7 * MS, 0);
}

int main(void)
{
    TEST(test_keyframes());
    TEST(test_clock());
    return test_end();
}
