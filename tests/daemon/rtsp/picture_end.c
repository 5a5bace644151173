// Trust in markers: at once if they are right, never if slices follow them; silence ends pictures
// without a marker.
#include "daemon/rtsp/depacketizer.h"

#include <string.h>

#include "tests/test.h"

static const int64_t MS = 1000000;

static struct picture_end_verdict verdict;

static void learn(int n, struct assembly_unit unit)
{
    unit.interval_ns = unit.interval_ns ? unit.interval_ns : 40 * MS;
    for (int i = 0; i < n; i++)
        picture_end_learn(&verdict, &unit);
}

static bool ends_at(int markers, bool early)
{
    return picture_end_at_marker(&verdict,
                                 &(struct assembly_unit){.markers = markers, .early = early});
}

static int64_t silence(struct assembly_unit unit, bool marked)
{
    unit.marked = marked;
    return picture_end_silence_ns(&verdict, &unit);
}

static void begin(void)
{
    memset(&verdict, 0, sizeof verdict);
}

static void check_end(enum picture_end end, const char *name)
{
    CHECK(verdict.end == end && strcmp(picture_end_name(end), name) == 0, "%s, not %s",
          picture_end_name(verdict.end), name);
}

static void test_trust(void)
{
    const struct assembly_unit one = {.markers = 1};
    begin();
    check_end(PICTURE_END_LEARNING, "learning");
    for (int i = 0; i < 2; i++) {
        CHECK(!ends_at(1, false) && silence(one, true) == 10 * MS, "picture %d", i);
        CHECK(silence(one, false) == INT64_MAX, "picture %d without a marker", i);
        learn(1, one);
    }
    CHECK(ends_at(1, false) && silence(one, false) == INT64_MAX, "the third");
    learn(13, one);
    check_end(PICTURE_END_LEARNING, "learning");
    learn(1, one);
    check_end(PICTURE_END_MARKER, "marker");
    // A picture that lacks packets may lack its marker.
    learn(20, (struct assembly_unit){.unit.damaged = true});
    check_end(PICTURE_END_MARKER, "marker");
    learn(1, (struct assembly_unit){0});
    check_end(PICTURE_END_LEARNING, "learning");
    CHECK(ends_at(1, false), "a marker that comes is right");
    learn(16, one);
    check_end(PICTURE_END_MARKER, "marker");
}

static void test_per_slice(void)
{
    begin();
    CHECK(!ends_at(2, true) && silence((struct assembly_unit){.early = true}, true) == 10 * MS,
          "the first picture");
    learn(1, (struct assembly_unit){.markers = 4, .early = true});
    check_end(PICTURE_END_PER_SLICE, "per slice");
    CHECK(!ends_at(3, false) && ends_at(4, false), "the second picture");
    CHECK(silence((struct assembly_unit){.markers = 3}, true) == INT64_MAX, "its fourth comes");
    CHECK(silence((struct assembly_unit){.markers = 3, .unit.damaged = true}, true) < 20 * MS,
          "or is lost");
    learn(40, (struct assembly_unit){.markers = 4, .early = true});
    learn(1, (struct assembly_unit){.markers = 3, .early = true});
    CHECK(!ends_at(3, false) && !ends_at(4, false), "another number of slices");
    CHECK(silence((struct assembly_unit){.markers = 3}, true) == 5 * MS, "then silence");
    learn(28, (struct assembly_unit){.markers = 3, .early = true});
    CHECK(!ends_at(3, false), "29 pictures");
    learn(1, (struct assembly_unit){.markers = 3, .early = true});
    CHECK(ends_at(3, false), "30 pictures");
    learn(63, (struct assembly_unit){.markers = 1});
    check_end(PICTURE_END_PER_SLICE, "per slice");
    learn(1, (struct assembly_unit){.markers = 1});
    check_end(PICTURE_END_MARKER, "marker"); // forgotten after 64
}

static void test_none(void)
{
    begin();
    learn(7, (struct assembly_unit){0});
    check_end(PICTURE_END_LEARNING, "learning");
    CHECK(silence((struct assembly_unit){0}, false) == INT64_MAX, "learning");
    learn(1, (struct assembly_unit){0});
    check_end(PICTURE_END_NONE, "none");
    CHECK(silence((struct assembly_unit){0}, false) == 5 * MS, "at least 5 ms");
    CHECK(ends_at(1, false), "a marker that comes is right");
    learn(1, (struct assembly_unit){.gap_ns = 300 * MS});
    CHECK(silence((struct assembly_unit){0}, false) == 10 * MS, "one stall doubles it");
    learn(1, (struct assembly_unit){.gap_ns = 3 * MS});
    CHECK(silence((struct assembly_unit){0}, false) == 12 * MS, "four gaps");
    learn(1, (struct assembly_unit){.gap_ns = 30 * MS});
    CHECK(silence((struct assembly_unit){0}, false) == 20 * MS, "half an interval");
    learn(62, (struct assembly_unit){.gap_ns = 2 * MS});
    CHECK(silence((struct assembly_unit){0}, false) == 8 * MS, "a stall is forgotten");
}

static void test_split(void)
{
    begin();
    learn(64, (struct assembly_unit){.gap_ns = 1 * MS, .interval_ns = 100 * MS});
    CHECK(silence((struct assembly_unit){0}, false) == 5 * MS, "none");
    picture_end_went_on(&verdict, false, true);
    CHECK(silence((struct assembly_unit){0}, false) == 10 * MS, "doubled");
    picture_end_went_on(&verdict, false, true);
    picture_end_went_on(&verdict, false, true);
    picture_end_went_on(&verdict, false, true);
    CHECK(silence((struct assembly_unit){0}, false) == 50 * MS, "half an interval");
    check_end(PICTURE_END_NONE, "none");
    learn(500, (struct assembly_unit){.gap_ns = 1 * MS, .interval_ns = 100 * MS});
    CHECK(silence((struct assembly_unit){0}, false) < 6 * MS, "forgotten");
}

static void test_went_on(void)
{
    begin();
    learn(30, (struct assembly_unit){.markers = 1});
    check_end(PICTURE_END_MARKER, "marker");
    picture_end_went_on(&verdict, true, false);
    check_end(PICTURE_END_PER_SLICE, "per slice");
    CHECK(!ends_at(1, false), "behind a marker came more");
}

int main(void)
{
    TEST(test_trust());
    TEST(test_per_slice());
    TEST(test_none());
    TEST(test_split());
    TEST(test_went_on());
    return test_end();
}
