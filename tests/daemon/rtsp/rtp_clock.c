// Cameras with wrong timestamps: each picture's time, compared with its arrival.
#include "daemon/rtsp/rtp_clock.h"

#include <math.h>
#include <stdlib.h>

#include "tests/test.h"

static const int64_t MS = 1000000, SECOND = 1000000000;

struct camera {
    int announced;     // ticks/s, in the SDP
    double fps, ticks; // pictures per second, ticks per picture
    uint32_t first;    // timestamp
    int64_t jitter_ns; // of arrivals, at most
    double frozen_s;   // from the fifth second on nothing comes for so long; then it catches up
    double catches_up; // multiple of the capture rate; 0: at once
    int outlier;       // picture with a timestamp hours off; 0: none
    int jump;          // all timestamps from this picture on are off; 0: none
    double burst_s;    // of video that comes at once at the start
    bool b_pictures;   // every second one is shown before the one sent ahead of it
    double decode_s;   // that we need for a picture, before reading the next one
};

struct outcome {
    double late_s; // largest lag behind the first picture, relative to arrivals
    double ahead_s;
    int back, guessed; // times that did not rise; times by arrival
    int64_t last_ns;
};

// Returns the arrival of picture `i`.
static int64_t arrival_ns(const struct camera *c, int i)
{
    const double taken_s = i / c->fps, begins_s = 5 + c->frozen_s;
    double s = taken_s < c->burst_s ? c->burst_s : taken_s;
    if (c->frozen_s > 0 && taken_s > 5) {
        const double caught_up_s =
            c->catches_up > 0 ? begins_s + (taken_s - 5) / c->catches_up : begins_s;
        s = taken_s > caught_up_s ? taken_s : caught_up_s;
    }
    return 100 * SECOND + (int64_t)(s * 1e9) + (c->jitter_ns ? rand() % c->jitter_ns : 0);
}

static struct outcome play(struct rtp_clock *clock, const struct camera *c, int pictures)
{
    struct outcome o = {0};
    int64_t first_ns = 0, first_arrival_ns = 0, ready_ns = 0;
    srand(1);
    rtp_clock_open(clock, c->announced);
    for (int i = 0; i < pictures; i++) {
        const bool off = (c->outlier && i == c->outlier) || (c->jump && i >= c->jump);
        const int shown = c->b_pictures && i > 0 ? (i % 2 ? i + 1 : i - 1) : i;
        const uint32_t timestamp =
            c->first + (uint32_t)llround(shown * c->ticks) + (off ? 3600u * 90000u * 3u : 0);
        const int64_t arrived_ns = arrival_ns(c, i);
        const bool waited = arrived_ns > ready_ns;
        const int64_t came_ns = waited ? arrived_ns : ready_ns;
        const struct rtp_time time = rtp_clock_read(clock, timestamp, came_ns, waited);
        ready_ns = came_ns + (int64_t)(c->decode_s * 1e9);
        if (i == 0) {
            first_ns = time.ns;
            first_arrival_ns = came_ns;
        }
        const double behind_s = (double)(came_ns - first_arrival_ns - (time.ns - first_ns)) / 1e9;
        o.late_s = fmax(o.late_s, behind_s);
        o.ahead_s = fmax(o.ahead_s, -behind_s);
        o.back += i > 0 && time.ns <= o.last_ns;
        o.guessed += time.guessed;
        o.last_ns = time.ns;
    }
    return o;
}

// A good camera's timestamps are its time, to the nanosecond, under any network delay.
static void test_good_cameras_keep_their_clock(void)
{
    static const struct camera cameras[] = {
        {90000, 25, 3600, .jitter_ns = 30000000},
        {90000, 25, 3600, .first = UINT32_MAX - 90000},
        {90000, 25, 3600, .frozen_s = 3},
        {90000, 25, 3600, .frozen_s = 3, .catches_up = 1.3},
        {90000, 25, 3600, .frozen_s = 6, .catches_up = 2},
        {90000, 25, 3600, .burst_s = 2},
        {90000, 1. / 60, 5400000, .first = 0},
        {30000, 20, 1500, .jitter_ns = 20000000},
        {30000, 20, 1500, .burst_s = 1},
        {1000, 25, 40, .jitter_ns = 10000000},
        {0, 25, 3600, .first = 0},
        {90000, 25, 3600, .decode_s = 0.044},
        {90000, 25, 3600, .decode_s = 0.060},
        {90000, 25, 3600, .decode_s = 0.060, .jitter_ns = 30000000},
        {30000, 20, 1500, .decode_s = 0.055},
    };
    for (size_t i = 0; i < sizeof cameras / sizeof *cameras; i++) {
        const struct camera *c = &cameras[i];
        struct rtp_clock clock;
        const struct outcome o = play(&clock, c, 1500);
        const int64_t ns = llround(1499 / c->fps * 1e9);
        CHECK(llabs(o.last_ns - ns) < MS && !o.back && !o.guessed,
              "camera %zu: %.3f s instead of %.3f, %d back, %d by arrival, %d ticks/s", i,
              (double)o.last_ns / 1e9, (double)ns / 1e9, o.back, o.guessed, rtp_clock_rate(&clock));
    }
}

// A clock with another rate than announced.
static void test_rate_is_measured(void)
{
    static const struct camera cameras[] = {
        {90000, 21, 3600, .first = 0},
        {90000, 21, 3600, .jitter_ns = 15000000},
        {90000, 25, 90000. / 21, .first = 0},
        {90000, 25, 3600 * 0.97, .first = 0},
        {90000, 25, 3600 * 0.99, .jitter_ns = 10000000},
        {90000, 12, 7500 * 0.8, .first = 0},
        {90000, 1, 90000 * 0.84, .first = 0},
        {30000, 20, 4500, .first = 0}, // announces 30000, stamps by 90000
        {30000, 20, 4500, .jitter_ns = 20000000},
        {30000, 1, 90000, .first = 0},
        {90000, 20, 1500, .first = 0},
        {90000, 25, 40, .first = 0},
    };
    for (size_t i = 0; i < sizeof cameras / sizeof *cameras; i++) {
        const struct camera *c = &cameras[i];
        const double true_rate = c->ticks * c->fps;
        struct rtp_clock clock;
        const struct outcome o = play(&clock, c, 60 * 25);
        CHECK(fabs(rtp_clock_rate(&clock) - true_rate) < 0.012 * true_rate && !o.back,
              "camera %zu: %d ticks/s instead of %.0f, %d back", i, rtp_clock_rate(&clock),
              true_rate, o.back);
    }
}

// Constant timestamps: time goes on by arrival.
static void test_constant_timestamps(void)
{
    for (uint32_t first = 0; first < 2; first++) {
        const struct camera c = {90000, 20, 0, .first = first * 77777};
        struct rtp_clock clock;
        const struct outcome o = play(&clock, &c, 200);
        CHECK(!o.back && o.guessed == 199 && o.late_s < 0.001 && o.ahead_s < 0.001,
              "%d back, %d by arrival, %.3f s late, %.3f s ahead", o.back, o.guessed, o.late_s,
              o.ahead_s);
    }
}

// Pictures sent in another order than shown: the announced rate holds.
static void test_reordered_pictures(void)
{
    static const struct camera cameras[] = {{90000, 25, 3600, .b_pictures = true},
                                            {30000, 20, 1500, .b_pictures = true},
                                            {30000, 1, 30000, .b_pictures = true}};
    for (size_t i = 0; i < sizeof cameras / sizeof *cameras; i++) {
        struct rtp_clock clock;
        const struct outcome o = play(&clock, &cameras[i], 1000);
        CHECK(rtp_clock_rate(&clock) == cameras[i].announced && !o.guessed,
              "camera %zu: %d ticks/s, %d by arrival", i, rtp_clock_rate(&clock), o.guessed);
    }
}

// One wrong timestamp is ignored; if the next ones agree with it, the camera has set its clock.
static void test_outliers(void)
{
    for (int at = 1; at < 90; at += 11) {
        const struct camera outlier = {90000, 25, 3600, .outlier = at};
        const struct camera jump = {90000, 25, 3600, .jump = at + 10};
        struct rtp_clock clock;
        struct outcome o = play(&clock, &outlier, 200);
        CHECK(!o.back && o.guessed == 1 && o.late_s < 0.001 && o.ahead_s < 0.001,
              "outlier %d: %d back, %d by arrival, %.3f s late, %.3f s ahead", at, o.back,
              o.guessed, o.late_s, o.ahead_s);
        o = play(&clock, &jump, 200);
        CHECK(!o.back && o.guessed == 1 && fabs(o.ahead_s - 10800) < 0.001,
              "jump %d: %d back, %d by arrival, %.3f s ahead", at, o.back, o.guessed, o.ahead_s);
    }
}

// A server's cached pictures are ready when the first one is read: their reading speed is not a
// rate.
static void test_backlog_at_the_start(void)
{
    static const int ticks[] = {1500, 4500};
    for (int ms = 1; ms <= 20; ms++) {
        for (int i = 0; i < 2; i++) {
            const struct camera c = {
                30000, 20, ticks[i], .burst_s = 2, .decode_s = ms / 1e3, .jitter_ns = 3000000};
            struct rtp_clock clock;
            const struct outcome o = play(&clock, &c, 120);
            CHECK(rtp_clock_rate(&clock) == 20 * ticks[i] && !o.back,
                  "%d ms a picture, %d ticks: %d ticks/s", ms, ticks[i], rtp_clock_rate(&clock));
        }
    }
}

// Several pictures that share a timestamp keep their order, and so does the next one.
static void test_shared_timestamps(void)
{
    struct rtp_clock clock;
    int64_t last_ns = -1;
    int back = 0;
    rtp_clock_open(&clock, 90000);
    for (int i = 0; i < 300; i++) {
        const int64_t late_ns = i % 7 == 5 ? 300 * MS : 0;
        const struct rtp_time time = rtp_clock_read(&clock, 3600u * (uint32_t)(i - i % 3),
                                                    SECOND + i * 40 * MS + late_ns, true);
        back += time.ns <= last_ns;
        last_ns = time.ns;
    }
    CHECK(!back && llabs(last_ns - 299 * 40 * MS) < 400 * MS, "%d back, %.3f s", back,
          (double)last_ns / 1e9);
}

// The clock is set back a minute, and that picture comes 80 ms late: it is still the next one.
static void test_late_outlier(void)
{
    struct rtp_clock clock;
    int64_t last_ns = 0;
    rtp_clock_open(&clock, 90000);
    for (int i = 0; i < 50; i++)
        last_ns = rtp_clock_read(&clock, (uint32_t)i * 3600, i * 40 * MS, true).ns;
    const uint32_t timestamp = 50 * 3600 - 60 * 90000;
    const struct rtp_time late = rtp_clock_read(&clock, timestamp, (50 * 40 + 80) * MS, true);
    CHECK(late.guessed && late.ns - last_ns == 40 * MS, "%g ms", (double)(late.ns - last_ns) / 1e6);
}

// The first timestamp is the outlier. The next pictures' time goes on from it, and the time of a
// sender report does not move.
static void test_first_is_outlier(void)
{
    struct rtp_clock clock;
    rtp_clock_open(&clock, 90000);
    rtp_clock_read(&clock, 5, 0, true);
    const uint32_t timestamp = 90000 * 3600;
    const int64_t reported_ns = rtp_clock_convert(&clock, timestamp);
    rtp_clock_read(&clock, timestamp, 40 * MS, true);
    const struct rtp_time time = rtp_clock_read(&clock, timestamp + 3600, 80 * MS, true);
    CHECK(time.ns > 0 && time.ns < 100 * MS, "%g ms", (double)time.ns / 1e6);
    CHECK(time.ns - clock.moved_ns == reported_ns + 40 * MS, "%g ms behind the report",
          (double)(time.ns - clock.moved_ns - reported_ns) / 1e6);
}

int main(void)
{
    TEST(test_good_cameras_keep_their_clock());
    TEST(test_rate_is_measured());
    TEST(test_constant_timestamps());
    TEST(test_reordered_pictures());
    TEST(test_outliers());
    TEST(test_late_outlier());
    TEST(test_first_is_outlier());
    TEST(test_backlog_at_the_start());
    TEST(test_shared_timestamps());
    return test_end();
}
