// Alarms over made-up statistics: each is raised once after its time, and cleared once.
#include "daemon/scene/scene.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

enum { PIXELS = 1000, CELLS = 64, RATE = 5 };

static const int64_t SECOND = 1000000000;

struct fixture {
    struct alarms alarms;
    struct scene_record record; // of the last picture
    int64_t pts_ns;
    uint32_t epoch;
    unsigned raised; // by the last picture
    int raises[ALARMS], clears[ALARMS];
    double raised_s[ALARMS], cleared_s[ALARMS]; // the last time
};

static void set_light(struct fixture *f, int mean, int deviation)
{
    f->record.luma.sum = (uint64_t)mean * PIXELS;
    f->record.luma.squares = (uint64_t)(mean * mean + deviation * deviation) * PIXELS;
}

static struct fixture usual(void)
{
    struct fixture f = {.record = {.luma = {.pixels = PIXELS, .laplacian = 10 * PIXELS},
                                   .columns = CELLS,
                                   .rows = 1}};
    set_light(&f, 110, 40);
    for (int i = 0; i < CELLS; i++)
        f.record.grid[i] = (uint8_t)(60 + 37 * i % 100);
    return f;
}

static void step(struct fixture *f, bool changes)
{
    f->record.info.scene.fingerprint += changes;
    static const struct statistics_params levels = {.black = 16, .white = 235};
    f->record.info.pts_ns = f->pts_ns;
    f->record.info.epoch = f->epoch;
    const unsigned raised = alarms_step(&f->alarms, &f->record, &levels);
    for (int i = 0; i < ALARMS; i++) {
        const bool is = raised >> i & 1, was = f->raised >> i & 1;
        f->raises[i] += is && !was;
        f->clears[i] += was && !is;
        if (is && !was)
            f->raised_s[i] = (double)f->pts_ns / 1e9;
        if (was && !is)
            f->cleared_s[i] = (double)f->pts_ns / 1e9;
    }
    f->raised = raised;
    f->pts_ns += SECOND / RATE;
}

static void run(struct fixture *f, int seconds)
{
    for (int i = 0; i < seconds * RATE; i++)
        step(f, true);
}

static void check_once(const struct fixture *f, enum alarm alarm, double raised_s, double cleared_s)
{
    for (int i = 0; i < ALARMS; i++)
        CHECK(f->raises[i] == (i == (int)alarm) && f->clears[i] == (i == (int)alarm),
              "%s: %d times raised, %d cleared", alarm_name(i), f->raises[i], f->clears[i]);
    CHECK(f->raised_s[alarm] == raised_s && f->cleared_s[alarm] == cleared_s,
          "%s at %g s, cleared at %g s", alarm_name(alarm), f->raised_s[alarm],
          f->cleared_s[alarm]);
}

static void test_dark(void)
{
    struct fixture f = usual();
    set_light(&f, 33, 3);
    run(&f, 10);
    CHECK(f.raised == 0, "dusk");
    set_light(&f, 20, 3);
    run(&f, 4);
    set_light(&f, 110, 40);
    run(&f, 6);
    CHECK(f.raised == 0, "4 s are too short");
    set_light(&f, 20, 3);
    run(&f, 20);
    set_light(&f, 33, 9); // between: neither
    run(&f, 20);
    CHECK(f.raised == 1 << ALARM_DARK, "%x", f.raised);
    set_light(&f, 110, 40);
    run(&f, 10);
    check_once(&f, ALARM_DARK, 25, 65);
    set_light(&f, 20, 30);
    run(&f, 10);
    CHECK(f.raised == 0, "a lamp in the night is no darkness");
}

static void test_glare(void)
{
    struct fixture f = usual();
    run(&f, 10);
    f.record.luma.white = 251;
    run(&f, 10);
    f.record.luma.white = 200;
    run(&f, 10);
    f.record.luma.white = 149;
    run(&f, 10);
    check_once(&f, ALARM_GLARE, 15, 35);
}

static void test_frozen(void)
{
    struct fixture f = usual();
    run(&f, 10);
    const int64_t from = f.pts_ns - SECOND / RATE; // the last that differed
    for (int i = 0; i < 20 * RATE; i++)
        step(&f, false);
    CHECK(f.raised == 1 << ALARM_FROZEN, "%x", f.raised);
    step(&f, true); // a keyframe of the same picture
    for (int i = 0; i < 4 * RATE; i++)
        step(&f, false);
    CHECK(f.raised == 1 << ALARM_FROZEN, "one picture that differs is not enough");
    const double again = (double)f.pts_ns / 1e9;
    for (int i = 0; i < 5 * RATE; i++) {
        step(&f, true);
        step(&f, false); // repeated if the camera is slower than its stream
    }
    check_once(&f, ALARM_FROZEN, (double)from / 1e9 + 15, again + 3);
    f = usual();
    for (int i = 0; i < 9; i++, f.pts_ns += 4 * SECOND)
        step(&f, false);
    CHECK(f.raised == 0, "9 pictures are too few");
    step(&f, false);
    CHECK(f.raised == 1 << ALARM_FROZEN, "10 are not");
}

static void test_blurred(void)
{
    struct fixture f = usual();
    f.record.luma.laplacian = 3 * PIXELS;
    run(&f, 5);
    f.record.luma.laplacian = 10 * PIXELS;
    run(&f, 95);
    f.record.luma.laplacian = 3 * PIXELS;
    run(&f, 20);
    f.record.luma.laplacian = 5 * PIXELS;
    run(&f, 20);
    f.record.luma.laplacian = 10 * PIXELS;
    run(&f, 20);
    check_once(&f, ALARM_BLURRED, 110, 150);
    f.record.luma.laplacian = 3 * PIXELS;
    run(&f, 40 * 60);
    f.record.luma.laplacian = 5 * PIXELS;
    run(&f, 40 * 60);
    CHECK(f.raised == 1 << ALARM_BLURRED && f.clears[ALARM_BLURRED] == 1, "a cover stays a cover");
    f = usual();
    run(&f, 100);
    f.record.luma.laplacian = 0;
    set_light(&f, 20, 0);
    run(&f, 20);
    CHECK(f.raised == 1 << ALARM_DARK, "%x: where it is dark nothing is sharp", f.raised);
}

static void turn(struct fixture *f)
{
    for (int i = 0; i < CELLS; i++)
        f->record.grid[i] = (uint8_t)(60 + 53 * i * i % 101);
}

static void test_moved(void)
{
    struct fixture f = usual();
    const struct fixture before = f;
    run(&f, 100);
    for (int i = 0; i < CELLS; i++)
        f.record.grid[i] = (uint8_t)(before.record.grid[i] / 2 + 20);
    run(&f, 60);
    CHECK(f.raised == 0, "less light is no move");
    turn(&f);
    run(&f, 60);
    CHECK(f.raised == 1 << ALARM_MOVED, "%x", f.raised);
    memcpy(f.record.grid, before.record.grid, sizeof f.record.grid);
    run(&f, 20);
    check_once(&f, ALARM_MOVED, 170, 230);
}

static void test_new_view(void)
{
    struct fixture f = usual();
    run(&f, 100);
    turn(&f);
    run(&f, 10 * 60 + 60);
    CHECK(f.raises[ALARM_MOVED] == 1 && f.clears[ALARM_MOVED] == 1, "%d raised, %d cleared",
          f.raises[ALARM_MOVED], f.clears[ALARM_MOVED]);
    CHECK(f.cleared_s[ALARM_MOVED] > 710 && f.cleared_s[ALARM_MOVED] < 722, "%g",
          f.cleared_s[ALARM_MOVED]);
}

// Even a usual level from few pictures does not adapt to a bad one.
static void test_early_blur(void)
{
    struct fixture f = usual();
    run(&f, 31);
    f.record.luma.laplacian = 39 * PIXELS / 10;
    run(&f, 11);
    CHECK(f.raised == 1 << ALARM_BLURRED, "%x", f.raised);
}

// Durations count within an epoch; raised alarms and the usual levels are kept.
static void test_epoch(void)
{
    struct fixture f = usual();
    run(&f, 100);
    set_light(&f, 20, 3);
    run(&f, 4);
    f.epoch++;
    f.pts_ns = 0;
    run(&f, 4);
    CHECK(f.raised == 0, "4 s of either");
    run(&f, 4);
    CHECK(f.raised == 1 << ALARM_DARK, "%x", f.raised);
    f.epoch++;
    f.pts_ns = 1000 * SECOND;
    set_light(&f, 110, 40);
    f.record.luma.laplacian = 3 * PIXELS;
    run(&f, 20);
    CHECK(f.raised == 1 << ALARM_BLURRED, "%x", f.raised);
    alarms_restart(&f.alarms);
    run(&f, 60);
    CHECK(f.raised == 0, "%x: in pictures of another size this is usual", f.raised);
}

int main(void)
{
    TEST(test_dark());
    TEST(test_glare());
    TEST(test_frozen());
    TEST(test_blurred());
    TEST(test_moved());
    TEST(test_new_view());
    TEST(test_early_blur());
    TEST(test_epoch());
    return test_end();
}
