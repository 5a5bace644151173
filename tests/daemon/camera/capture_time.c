#include "daemon/camera/stream.h"

#include "daemon/wire.h"
#include "tests/test.h"

static const int64_t MS = 1000000, START = 1700000000 * INT64_C(1000000000);

// A camera with a picture every 40 ms: each arrives `delay_ms` after its capture, reports begin
// with picture 20, and the camera's clock is set by `step_ms` at picture 60.
struct pictures {
    int64_t delay_ms, step_ms;
    struct capture_time time;
    int64_t last_ns;
    int epochs, reported, late;
};

static void next(struct pictures *pictures, int i)
{
    const bool report = i >= 20;
    const int64_t own_ns = START + i * 40 * MS + (i >= 60 ? pictures->step_ms * MS : 0);
    struct frame_info info = {
        .pts_ns = i * 40 * MS,
        .capture_ns = report ? own_ns : own_ns + pictures->delay_ms * MS,
        .flags = FRAMED_FLAG_KEYFRAME | (report ? FRAMED_FLAG_CAPTURE_CLOCK : 0),
    };
    const bool jumps = capture_time_jumps(&pictures->time, &info);
    pictures->epochs += jumps;
    info.epoch = (uint32_t)pictures->epochs;
    capture_time_rise(&pictures->time, &info);
    CHECK(i == 0 || jumps || info.capture_ns > pictures->last_ns, "picture %d: back by %lld ns", i,
          (long long)(pictures->last_ns - info.capture_ns));
    CHECK(info.flags & FRAMED_FLAG_KEYFRAME, "picture %d", i);
    const bool reported = info.flags & FRAMED_FLAG_CAPTURE_CLOCK;
    CHECK(!reported || info.capture_ns == own_ns, "picture %d is not of its report", i);
    pictures->reported += reported;
    pictures->late += report && !reported;
    pictures->last_ns = info.capture_ns;
}

static void test(int64_t delay_ms, int64_t step_ms, int epochs, int late)
{
    struct pictures pictures = {.delay_ms = delay_ms, .step_ms = step_ms};
    for (int i = 0; i < 600; i++)
        next(&pictures, i);
    CHECK(pictures.epochs == epochs && pictures.late == late && pictures.reported == 580 - late,
          "delay %lld, step %lld: %d epochs, %d of reports, %d held up", (long long)delay_ms,
          (long long)step_ms, pictures.epochs, pictures.reported, pictures.late);
}

// The stream's time jumps at picture 60, and the next report comes at picture `reported`: until
// then, times by the last report are off by the jump.
static void test_jump(int64_t jump_ms, int reported, int by_report)
{
    struct capture_time time = {0};
    uint32_t epoch = 0;
    int64_t last_ns = 0, furthest_ns = 0;
    int of_reports = 0;
    for (int i = 0; i < 1000; i++) {
        const int64_t own_ns = START + i * 40 * MS;
        struct frame_info info = {
            .capture_ns = own_ns + (i >= 60 && i < reported ? jump_ms * MS : 0),
            .pts_ns = i * 40 * MS,
            .received_ns = (i * 40 + 7) * MS,
            .flags = FRAMED_FLAG_CAPTURE_CLOCK,
        };
        if (i == 60)
            capture_time_doubt(&time, &info);
        const bool jumps = i == 60 || capture_time_jumps(&time, &info);
        epoch += jumps;
        info.epoch = epoch;
        capture_time_rise(&time, &info);
        CHECK(i == 0 || jumps || info.capture_ns > last_ns, "picture %d", i);
        last_ns = info.capture_ns;
        const int64_t off_ns =
            info.capture_ns > own_ns ? info.capture_ns - own_ns : own_ns - info.capture_ns;
        furthest_ns = off_ns > furthest_ns && i < 800 ? off_ns : furthest_ns;
        of_reports += (info.flags & FRAMED_FLAG_CAPTURE_CLOCK) != 0;
    }
    CHECK(epoch == 1 && of_reports == by_report && furthest_ns <= MS,
          "jump %lld: %u epochs, %d of reports, off by %lld ns", (long long)jump_ms, epoch,
          of_reports, (long long)furthest_ns);
}

int main(void)
{
    TEST(test_jump(3600 * 1000, 160, 900));
    TEST(test_jump(-3600 * 1000, 160, 900));
    TEST(test_jump(-1000, 160, 900));
    TEST(test_jump(3600 * 1000, 2000, 60 + 190)); // the camera set its clock too
    TEST(test(0, 0, 0, 0));
    TEST(test(45, 0, 0, 1)); // a frame period and the network
    TEST(test(900, 0, 0, 22));
    TEST(test(45, 3600 * 1000, 1, 1)); // the clock is set forward
    TEST(test(45, 600, 1, 1));
    TEST(test(45, 400, 0, 1));       // drift
    TEST(test(45, -500, 0, 1 + 12)); // backwards
    TEST(test(45, -600, 1, 1));
    TEST(test(45, -3600 * 1000, 1, 1));
    TEST(test(-3600 * 1000, 0, 0, 0)); // the camera's clock is wrong
    TEST(test(3600 * 1000, 0, 1, 0));
    return test_end();
}
