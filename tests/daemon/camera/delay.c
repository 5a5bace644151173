// A picture's delay: after a standstill, with a drifting clock, after a permanent pause.
#include "daemon/base/clock.h"
#include "daemon/camera/stream.h"

#include "daemon/codec/frame.h"
#include "tests/test.h"

static const int64_t MS = 1000000, START = 5000 * INT64_C(1000000000);

struct camera {
    struct delay delay;
    int64_t pts, now;
    int waits_for; // the input waits for one in this many pictures; 0: for none, we are too slow
    int pictures;
};

// Shows `n` pictures, 40 ms apart by timestamp and `step_ms` by arrival. Returns the delay of the
// last in ms; *worst is the largest.
static int64_t show(struct camera *camera, int n, int64_t step_ms, int64_t *worst)
{
    int64_t behind = 0;
    *worst = 0;
    for (int i = 0; i < n; i++) {
        camera->pts += 40 * MS;
        camera->now += step_ms * MS;
        const bool waited = camera->waits_for && camera->pictures++ % camera->waits_for == 0;
        behind = delay_read(&camera->delay, camera->pts, waited, camera->now) / MS;
        *worst = behind > *worst ? behind : *worst;
    }
    return behind;
}

static void test_burst(int64_t pause_ms)
{
    struct camera camera = {.now = START, .waits_for = 1};
    int64_t worst;
    CHECK(show(&camera, 100, 40, &worst) == 0 && worst == 0, "steady: %lld", (long long)worst);
    camera.now += pause_ms * MS;
    int64_t behind = show(&camera, 1, 1, &worst);
    CHECK(behind == pause_ms - 39, "first of the burst: %lld", (long long)behind);
    int left = (int)(behind / 39) + 1; // pictures; each gains 39 ms
    behind = show(&camera, left - 2, 1, &worst);
    CHECK(behind > 0 && behind < 2 * 39, "most of the burst: %lld", (long long)behind);
    show(&camera, 2, 1, &worst);
    behind = show(&camera, 100, 40, &worst);
    CHECK(behind == 0, "behind the burst: %lld", (long long)behind);
}

// A minute's delay at double speed takes a minute to catch up: it is reported all the time.
static void test_slow_burst(void)
{
    struct camera camera = {.now = START, .waits_for = 1};
    int64_t worst;
    show(&camera, 100, 40, &worst);
    camera.now += 60000 * MS;
    int64_t behind = show(&camera, 1500, 20, &worst);
    CHECK(behind == 30000, "%lld", (long long)behind);
}

static void test_other_clock(void)
{
    struct camera camera = {.now = START, .waits_for = 1};
    int64_t worst;
    for (int i = 0; i < 100; i++) { // 2.5 % slower by its own clock
        int64_t behind = show(&camera, 250, 41, &worst);
        CHECK(behind <= 500 && worst <= 510, "drift: %lld, %lld", (long long)behind,
              (long long)worst);
    }
    camera = (struct camera){.now = START, .waits_for = 1};
    show(&camera, 100, 40, &worst);
    camera.now += 5000 * MS;
    CHECK(show(&camera, 1, 40, &worst) == 5000, "paused: %lld", (long long)worst);
    show(&camera, 600, 40, &worst);
    CHECK(show(&camera, 1, 40, &worst) == 0, "goes on: %lld", (long long)worst);
}

// Pictures that are read at once are not late, even with a slow camera clock. They are late if we
// are too slow to decode them as they come.
static void test_slow_clock(void)
{
    static const int64_t steps_ms[] = {41, 44, 48, 52};
    for (size_t i = 0; i < sizeof steps_ms / sizeof *steps_ms; i++) {
        struct camera slow = {.now = START, .waits_for = 1 + (int)i % 2};
        struct camera busy = {.now = START, .waits_for = i < 2 ? 0 : 7};
        int64_t worst;
        show(&slow, 3000, steps_ms[i], &worst);
        CHECK(worst < 450, "%lld ms a picture: %lld", (long long)steps_ms[i], (long long)worst);
        show(&busy, 190, steps_ms[i], &worst);
        CHECK(worst == 189 * (steps_ms[i] - 40), "busy, %lld ms a picture: %lld",
              (long long)steps_ms[i], (long long)worst);
    }
}

static void test_age(void)
{
    int64_t now = monotonic_ns();
    struct frame_info info = {.received_ns = now - 100 * MS, .decoded_ns = now - 10 * MS};
    CHECK(frame_is_late(&info, 50 * MS) && !frame_is_late(&info, 60000 * MS), "by its arrival");
    info.delay_ns = 70000 * MS;
    CHECK(frame_is_late(&info, 60000 * MS) && !frame_is_late(&info, 0), "by its time");
}

int main(void)
{
    TEST(test_age());
    TEST(test_burst(3000));
    TEST(test_burst(60000));
    TEST(test_slow_burst());
    TEST(test_other_clock());
    TEST(test_slow_clock());
    return test_end();
}
