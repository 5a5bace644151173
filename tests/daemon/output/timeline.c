// Times of a copy: dts rises and never exceeds pts, with any times of the camera.
#include "daemon/output/muxer.h"

#include <stdlib.h>

#include "tests/test.h"

#define MS 1000000LL

enum { FRAME_MS = 40, PICTURES = 400 };

// Feeds pictures with these presentation numbers, in repeated groups. Checks dts, and from picture
// `settled` on pts too.
static void feed(struct timeline *line, const int order[], int n, int settled)
{
    int64_t last = INT64_MIN, base = INT64_MIN;
    for (int i = 0; i < PICTURES; i++) {
        const int64_t number = i / n * n + order[i % n];
        const struct packet_times times =
            timeline_next(line, number * FRAME_MS * MS, i * FRAME_MS * MS);
        CHECK(times.dts > last, "dts %lld of picture %d behind %lld", (long long)times.dts, i,
              (long long)last);
        CHECK(times.dts <= times.pts, "dts %lld above pts %lld of picture %d", (long long)times.dts,
              (long long)times.pts, i);
        if (base == INT64_MIN)
            base = times.pts - number * FRAME_MS * MS;
        if (i >= settled)
            CHECK(times.pts == base + number * FRAME_MS * MS, "pts %lld of picture %d",
                  (long long)times.pts, i);
        last = times.dts;
    }
}

static void test_orders(void)
{
    static const int plain[] = {0}, b_frames[] = {0, 3, 1, 2}, pyramid[] = {0, 4, 2, 1, 3};
    struct timeline line = {0};
    timeline_begin(&line, 0);
    feed(&line, plain, 1, 0);
    CHECK(line.interval_ns == FRAME_MS * MS, "interval %lld", (long long)line.interval_ns);
    line = (struct timeline){0};
    timeline_begin(&line, 2);
    feed(&line, b_frames, 4, 0);
    line = (struct timeline){0};
    timeline_begin(&line, 2);
    feed(&line, pyramid, 5, 0);
    // Reordering is not announced: it is learnt within a group.
    line = (struct timeline){0};
    timeline_begin(&line, 0);
    feed(&line, pyramid, 5, 10);
    const int learnt = line.delay;
    CHECK(learnt >= 2 && learnt <= 4, "delay %d", learnt);
    timeline_begin(&line, 0);
    CHECK(line.delay == learnt, "forgot the delay: %d", line.delay);
}

// A camera that restarts continues its timeline, later by the delay of its packets.
static void test_jumps(void)
{
    struct timeline line = {0};
    timeline_begin(&line, 0);
    const int64_t first = timeline_next(&line, 1000 * MS, 50 * MS).pts;
    CHECK(timeline_next(&line, 1040 * MS, 90 * MS).pts - first == 40 * MS, "goes on");
    CHECK(timeline_next(&line, 99000 * MS, 8090 * MS).pts - first == 8040 * MS, "begins anew");
    CHECK(timeline_next(&line, 99040 * MS, 8131 * MS).pts - first == 8080 * MS, "goes on there");
    CHECK(timeline_next(&line, 0, 8171 * MS).pts - first == 8120 * MS, "goes back to 0");
    CHECK(timeline_next(&line, INT64_MIN, 8211 * MS).pts - first == 8160 * MS, "no time");
    CHECK(timeline_next(&line, 80 * MS, 8251 * MS).pts - first == 8200 * MS, "a time again");
    // A burst is no jump, nor is a network pause that the camera's times do not show.
    CHECK(timeline_next(&line, 120 * MS, 11251 * MS).pts - first == 8240 * MS, "late");
    CHECK(timeline_next(&line, 3120 * MS, 11252 * MS).pts - first == 11240 * MS, "early");
}

// Nonsensical times result in an order that a container accepts.
static void test_nonsense(void)
{
    struct timeline line = {0};
    int64_t last = INT64_MIN, received = 0;
    srand(1);
    timeline_begin(&line, 2);
    for (int i = 0; i < 20000; i++) {
        const int64_t pts = rand() % 10 ? (rand() % 4000 - 1000) * MS : INT64_MIN;
        if (rand() % 100 == 0) {
            timeline_begin(&line, rand() % 20);
            last = INT64_MIN;
        }
        const struct packet_times times = timeline_next(&line, pts, received += rand() % 100 * MS);
        CHECK(times.dts > last && times.dts <= times.pts, "picture %d: %lld, %lld after %lld", i,
              (long long)times.dts, (long long)times.pts, (long long)last);
        CHECK(line.n <= TIMELINE_DELAY_MAX, "picture %d: %d pending", i, line.n);
        last = times.dts;
    }
}

int main(void)
{
    TEST(test_orders());
    TEST(test_jumps());
    TEST(test_nonsense());
    return test_end();
}
