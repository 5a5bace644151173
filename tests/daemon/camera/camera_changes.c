// The states and alarms of a camera that count as changes, and changes that nobody takes.
#include "daemon/camera/camera_report.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "tests/test.h"

static struct camera_report report;

static void start(void)
{
    memset(&report, 0, sizeof report);
    camera_report_open(&report, NULL, NULL);
}

static void expect_none(void)
{
    struct camera_change change;
    CHECK(!camera_report_take_change(&report, &change), "a change: state %d, %s", (int)change.state,
          change.why);
}

static struct camera_change expect_state(enum camera_state state, const char *why)
{
    struct camera_change change = {0};
    CHECK(camera_report_take_change(&report, &change), "no change");
    CHECK(!change.is_alarm && change.state == state && strcmp(change.why, why) == 0, "state %d, %s",
          (int)change.state, change.why);
    CHECK(realtime_ns() - change.realtime_ns < INT64_C(5000000000), "its time");
    return change;
}

static void test_states(void)
{
    start();
    camera_report_state(&report, CAMERA_CONNECTING, NULL);
    expect_none();
    camera_report_state(&report, CAMERA_RUNNING, NULL);
    CHECK(expect_state(CAMERA_RUNNING, "").outage_ns == 0, "an outage before the first picture");
    camera_report_state(&report, CAMERA_RETRYING, "refused");
    expect_state(CAMERA_RETRYING, "refused");
    camera_report_state(&report, CAMERA_CONNECTING, NULL);
    camera_report_state(&report, CAMERA_RETRYING, "refused");
    camera_report_state(&report, CAMERA_RETRYING, NULL);
    expect_none();
    camera_report_state(&report, CAMERA_RETRYING, "rtsp://viewer:geheim@h/ is silent");
    expect_state(CAMERA_RETRYING, "rtsp://h/ is silent");
    camera_report_state(&report, CAMERA_RUNNING, NULL);
    CHECK(expect_state(CAMERA_RUNNING, "").outage_ns > 0, "no outage");
    camera_report_state(&report, CAMERA_ENDED, "stopped");
    expect_state(CAMERA_ENDED, "stopped");
    expect_none();
    camera_report_close(&report);
}

static void test_alarms(void)
{
    struct camera_change change;
    start();
    camera_report_alarms(&report, 0);
    expect_none();
    camera_report_alarms(&report, 1 << ALARM_DARK | 1 << ALARM_MOVED);
    camera_report_alarms(&report, 1 << ALARM_DARK | 1 << ALARM_MOVED);
    camera_report_alarms(&report, 1 << ALARM_MOVED);
    const struct {
        enum alarm alarm;
        bool raised;
    } wanted[] = {{ALARM_DARK, true}, {ALARM_MOVED, true}, {ALARM_DARK, false}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        CHECK(camera_report_take_change(&report, &change) && change.is_alarm &&
                  change.alarm == wanted[i].alarm && change.raised == wanted[i].raised,
              "alarm %zu: %d raised %d", i, (int)change.alarm, change.raised);
    expect_none();
    camera_report_close(&report);
}

static void test_newest_stay(void)
{
    char why[16];
    start();
    for (int i = 0; i < CAMERA_CHANGES_MAX + 5; i++) {
        snprintf(why, sizeof why, "%d", i);
        camera_report_state(&report, CAMERA_RETRYING, why);
    }
    for (int i = 5; i < CAMERA_CHANGES_MAX + 5; i++) {
        snprintf(why, sizeof why, "%d", i);
        expect_state(CAMERA_RETRYING, why);
    }
    expect_none();
    camera_report_close(&report);
}

int main(void)
{
    TEST(test_states());
    TEST(test_alarms());
    TEST(test_newest_stay());
    return test_end();
}
