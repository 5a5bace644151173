// Pictures that a gate passes: motion with its hold time, one now and then, damage, unknown
// pictures, new epochs and sizes.
#include "daemon/output/gate.h"

#include "daemon/wire.h"
#include "tests/test.h"

static const int64_t MS = 1000000, S = 1000000000;

static struct frame_info picture(int64_t pts_ns)
{
    return (struct frame_info){
        .pts_ns = pts_ns,
        .epoch = 1,
        .source_width = 64,
        .source_height = 48,
        .scene = {.known = true},
    };
}

static bool offer(struct gate *gate, const struct gate_config *config,
                  const struct frame_info *info)
{
    const bool opens = gate_opens(gate, config, info);
    if (opens)
        gate_passed(gate, info);
    return opens;
}

static bool still(struct gate *gate, const struct gate_config *config, int64_t pts_ns)
{
    const struct frame_info info = picture(pts_ns);
    return offer(gate, config, &info);
}

static bool moving(struct gate *gate, const struct gate_config *config, int64_t pts_ns)
{
    struct frame_info info = picture(pts_ns);
    info.scene.moving = true;
    return offer(gate, config, &info);
}

static bool damaged(struct gate *gate, const struct gate_config *config, int64_t pts_ns)
{
    struct frame_info info = picture(pts_ns);
    info.flags = FRAMED_FLAG_DAMAGED;
    info.scene = (struct scene_facts){.moving = true, .fingerprint = ~UINT64_C(0)};
    return offer(gate, config, &info);
}

static const struct gate_config by_motion = {true, {5 * S}, {10 * S}};

static void test_none(void)
{
    const struct gate_config none = {.hold = {5 * S}, .every = {10 * S}};
    struct gate gate = {0};
    for (int i = 0; i < 9; i++)
        CHECK(still(&gate, &none, i * MS) && damaged(&gate, &none, i * MS), "no gate");
}

static void test_motion(void)
{
    struct gate gate = {0};
    CHECK(still(&gate, &by_motion, 0), "the first");
    CHECK(!still(&gate, &by_motion, 40 * MS), "nothing moves");
    CHECK(moving(&gate, &by_motion, 2 * S), "something moves");
    CHECK(still(&gate, &by_motion, 2 * S + 40 * MS), "held");
    CHECK(still(&gate, &by_motion, 7 * S), "to the end of the hold");
    CHECK(!still(&gate, &by_motion, 7 * S + 1), "and no longer");
    CHECK(moving(&gate, &by_motion, 8 * S) && still(&gate, &by_motion, 13 * S), "again");
}

static void test_every(void)
{
    struct gate gate = {0};
    int passed = 0;
    for (int64_t pts = 0; pts < 60 * S; pts += 40 * MS)
        passed += still(&gate, &by_motion, pts);
    CHECK(passed == 6, "%d of a minute of stillness", passed);
    struct gate_config never = by_motion;
    never.every.ns = 0;
    CHECK(!still(&gate, &never, 3600 * S), "0: never");
}

static void test_damage(void)
{
    struct gate gate = {0}, late = {0};
    CHECK(!damaged(&gate, &by_motion, 0) && !damaged(&late, &by_motion, 20 * S), "not the first");
    CHECK(still(&gate, &by_motion, 1), "but the first that is whole");
    CHECK(!damaged(&gate, &by_motion, S), "it does not open the gate");
    CHECK(!still(&gate, &by_motion, S + 1), "nor hold it open");
    CHECK(moving(&gate, &by_motion, 2 * S) && damaged(&gate, &by_motion, 3 * S), "an open gate");
    CHECK(!still(&gate, &by_motion, 7 * S + 1), "is held by what was whole");
    CHECK(damaged(&gate, &by_motion, 13 * S), "one now and then");
}

static void test_unknown(void)
{
    struct gate gate = {0};
    struct frame_info info = picture(0);
    info.scene = (struct scene_facts){0};
    for (int i = 0; i < 9; i++, info.pts_ns += 40 * MS)
        CHECK(offer(&gate, &by_motion, &info), "nothing is known");
    CHECK(!still(&gate, &by_motion, S), "the first was");
}

// Motion between the output's pictures holds the gate open for the next of them, and a picture lost
// after the gate is not the first.
static void test_lost(void)
{
    struct gate gate = {0};
    struct frame_info info = picture(S);
    CHECK(still(&gate, &by_motion, 0), "the first");
    info.scene.moving = true;
    CHECK(gate_opens(&gate, &by_motion, &info) && still(&gate, &by_motion, 2 * S), "thinned");
    gate = (struct gate){0};
    info = picture(0);
    CHECK(gate_opens(&gate, &by_motion, &info), "the first is lost");
    CHECK(still(&gate, &by_motion, S) && !still(&gate, &by_motion, 2 * S), "so the next is first");
}

static void test_new_epoch(void)
{
    struct gate gate = {0};
    CHECK(moving(&gate, &by_motion, 100 * S), "the first");
    struct frame_info info = picture(0);
    info.epoch = 2;
    CHECK(offer(&gate, &by_motion, &info), "timestamps begin anew");
    info.pts_ns = 100 * S + 1;
    gate_passed(&gate, &info);
    CHECK(!offer(&gate, &by_motion, &info), "motion of another epoch holds nothing open");
    info.source_width = 128;
    CHECK(offer(&gate, &by_motion, &info) && !offer(&gate, &by_motion, &info), "another size");
}

int main(void)
{
    TEST(test_none());
    TEST(test_motion());
    TEST(test_every());
    TEST(test_damage());
    TEST(test_unknown());
    TEST(test_lost());
    TEST(test_new_epoch());
    return test_end();
}
