// Sessions that begin with pictures of earlier ones: which of these are old.
#include "daemon/input/replay.h"

#include <string.h>

#include "tests/test.h"

static const int64_t MS = 1000000, STEP_NS = 40000000;

// A session of units [from, to): `cached` of them come at once, the others at their pace. Returns
// how many are not old.
static int play(struct replay_memory *memory, int from, int to, int cached, bool silent)
{
    struct replay replay = {0};
    int shown = 0;
    for (int i = from; i < to; i++) {
        uint8_t data[40];
        memset(data, i & 0xff, sizeof data);
        memcpy(data + 20, &i, sizeof i);
        const int paced = i - from < cached ? 0 : i - from - cached + 1;
        shown += !replay_add(&replay, memory,
                             &(struct replay_unit){
                                 .data = data,
                                 .bytes = sizeof data,
                                 .received_ns = 1000 * MS + paced * STEP_NS,
                                 .time_ns = (i - from) * STEP_NS,
                                 .usual_ns = STEP_NS,
                             });
    }
    replay_end(&replay, memory, silent);
    return shown;
}

static void test_dead_camera(void)
{
    struct replay_memory memory = {0};
    CHECK(play(&memory, 0, 100, 0, true) == 100, "a first session");
    for (int cached = 1; cached < 100; cached += 9)
        CHECK(play(&memory, 100 - cached, 100, cached, true) == 0, "a cache of %d", cached);
}

// The cache is at its own pace here: the second session cannot be told from a clip's, later ones
// can.
static void test_dead_camera_at_its_pace(void)
{
    struct replay_memory memory = {0};
    play(&memory, 0, 100, 0, true);
    play(&memory, 80, 100, 0, true);
    for (int i = 0; i < 3; i++)
        CHECK(play(&memory, 80, 100, 0, true) == 0, "shown again");
    CHECK(play(&memory, 80, 130, 0, false) >= 30, "the camera is back");
    CHECK(play(&memory, 130, 150, 0, false) == 20, "another session");
}

static void test_live_camera_behind_a_cache(void)
{
    struct replay_memory memory = {0};
    play(&memory, 0, 100, 0, false);
    CHECK(play(&memory, 90, 140, 20, false) == 40, "100 to 139 are new");
}

// Test servers begin with the same picture for each client.
static void test_looped_clip(void)
{
    struct replay_memory memory = {0};
    for (int i = 0; i < 4; i++) {
        const int shown = play(&memory, 0, 500, 0, false);
        CHECK(shown >= 499, "session %d: %d of 500", i, shown);
    }
    CHECK(play(&memory, 0, 900, 0, true) >= 899, "longer than any cache");
    CHECK(play(&memory, 0, 900, 0, true) >= 899, "though it fell silent");
}

static void test_memory_is_a_ring(void)
{
    struct replay_memory memory = {0};
    CHECK(play(&memory, 0, 5000, 0, false) == 5000, "new ones");
    CHECK(play(&memory, 4000, 5000, 1000, true) == 0, "the last thousand");
    CHECK(play(&memory, 100, 200, 100, true) == 100, "forgotten ones");
}

int main(void)
{
    TEST(test_dead_camera());
    TEST(test_dead_camera_at_its_pace());
    TEST(test_live_camera_behind_a_cache());
    TEST(test_looped_clip());
    TEST(test_memory_is_a_ring());
    return test_end();
}
