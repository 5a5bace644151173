// Sessions that begin with old pictures of earlier ones: detection of those.
#include "daemon/source/demux.h"

#include <string.h>

#include "tests/test.h"

static const int64_t MS = 1000000, STEP_NS = 40000000;

struct box {
    int64_t decodes_ns; // per picture, before it reads the next one
    int loses;          // one unit in this many loses a packet; 0: none
    unsigned sessions;
};

// Plays a session of units [from, to): `cached` of them come at once, the others at their pace.
// Returns the number of units that are not old.
static int play_on_box(struct box *box, struct replay_memory *memory, int from, int to, int cached,
                       bool silent)
{
    struct replay replay = {0};
    int shown = 0;
    int64_t ready_ns = 0;
    box->sessions++;
    for (int i = from; i < to; i++) {
        uint8_t data[40];
        memset(data, i & 0xff, sizeof data);
        memcpy(data + 20, &i, sizeof i);
        const int paced = i - from < cached ? 0 : i - from - cached + 1;
        const int64_t came_ns = 1000 * MS + paced * STEP_NS;
        const int64_t read_ns = came_ns > ready_ns ? came_ns : ready_ns;
        const bool incomplete = box->loses && i % box->loses == 0;
        if (incomplete)
            data[box->sessions % 20] ^= 0x55; // the remaining part
        const struct rtsp_unit unit = {
            .unit = {.data = data,
                     .bytes = sizeof data,
                     .received_ns = read_ns,
                     .damaged = incomplete},
            .time_ns = (i - from) * STEP_NS,
            .waited = came_ns > ready_ns,
        };
        shown += !replay_add(&replay, memory, &unit, STEP_NS);
        ready_ns = read_ns + box->decodes_ns;
    }
    replay_end(&replay, memory, silent);
    return shown;
}

static int play(struct replay_memory *memory, int from, int to, int cached, bool silent)
{
    return play_on_box(&(struct box){0}, memory, from, to, cached, silent);
}

static void test_dead_camera(void)
{
    struct replay_memory memory = {0};
    CHECK(play(&memory, 0, 100, 0, true) == 100, "a first session");
    for (int cached = 1; cached < 100; cached += 9)
        CHECK(play(&memory, 100 - cached, 100, cached, true) == 0, "a cache of %d", cached);
}

// A cached picture is not new when it lost a packet, nor when a slow reader reads it late.
static void test_dead_camera_and_busy_box(void)
{
    for (int ms = 0; ms <= 60; ms += 5) {
        for (int loses = 0; loses < 4; loses++) {
            struct box box = {.decodes_ns = ms * MS, .loses = loses};
            struct replay_memory memory = {0};
            CHECK(play_on_box(&box, &memory, 0, 100, 0, false) == 100, "a first session");
            for (int session = 0; session < 3; session++) {
                const int shown = play_on_box(&box, &memory, 75, 100, 25, true);
                CHECK(shown == 0, "%d ms a picture, each %d. incomplete: %d of 25", ms, loses,
                      shown);
            }
            const int shown = play_on_box(&box, &memory, 75, 150, 25, false);
            CHECK(shown >= 45 || loses == 1, "%d ms, %d: back, %d of 75", ms, loses, shown);
        }
    }
}

// A clip that starts again for each client, read too slowly.
static void test_looped_clip_on_busy_box(void)
{
    struct box box = {.decodes_ns = 45 * MS};
    struct replay_memory memory = {0};
    play_on_box(&box, &memory, 0, 1000, 0, false);
    const int shown = play_on_box(&box, &memory, 0, 1000, 0, false);
    CHECK(shown > 500, "%d of 1000", shown);
}

// The cache is sent at its own pace: the second session looks like a clip's, later ones do not.
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
    TEST(test_dead_camera_and_busy_box());
    TEST(test_dead_camera_at_its_pace());
    TEST(test_live_camera_behind_a_cache());
    TEST(test_looped_clip());
    TEST(test_looped_clip_on_busy_box());
    TEST(test_memory_is_a_ring());
    return test_end();
}
