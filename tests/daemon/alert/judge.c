// Raised and cleared alerts, over thousands of simulated hours of cameras that go, come back, flap
// and deliver damage.
#include "daemon/alert/judge.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

enum { TICK_MS = 200, RATE = 5 }; // pictures per tick

static const int64_t MS = 1000000, SECOND = 1000000000, HOUR = 3600 * INT64_C(1000000000);
static const int64_t MEDIA = 5 * INT64_C(1000000000), CONNECT = 10 * INT64_C(1000000000);
static const struct judge_limits limits = {.calm_ns = 300 * INT64_C(1000000000)};

struct camera_of_test {
    struct judge judge;
    struct judge_facts facts;
    int64_t silent_ns; // start of its silence; 0: it sends
    bool closes;       // a lost camera closes its connection, so its thread notices at once
    int damaged;       // of ten pictures
    // The results.
    int raised[ALERT_KINDS], cleared[ALERT_KINDS], events;
    int64_t event_ns[4096], first_raised_ns;
};

static void open_camera(struct camera_of_test *c)
{
    *c = (struct camera_of_test){.facts = {.now_ns = 1000 * SECOND,
                                           .state = CAMERA_CONNECTING,
                                           .media_timeout_ns = MEDIA,
                                           .connect_timeout_ns = CONNECT}};
    judge_open(&c->judge);
}

static void note(struct camera_of_test *c, unsigned changed)
{
    for (int i = 0; i < ALERT_KINDS; i++) {
        if (!(changed >> i & 1))
            continue;
        const bool raised = c->judge.alert[i].raised;
        c->raised[i] += raised;
        c->cleared[i] += !raised;
        if (raised && !c->first_raised_ns)
            c->first_raised_ns = c->facts.now_ns;
        c->event_ns[c->events++ % 4096] = c->facts.now_ns;
        CHECK(!c->judge.alert[i].held, "%s is held and told", alert_kind_name(i));
        CHECK(c->raised[i] - c->cleared[i] == raised || i == ALERT_FLAPPING,
              "%s: %d times raised, %d cleared", alert_kind_name(i), c->raised[i], c->cleared[i]);
    }
}

static void tick(struct camera_of_test *c, int64_t tick_ms)
{
    struct judge_facts *facts = &c->facts;
    facts->now_ns += tick_ms * MS;
    if (c->silent_ns && (c->closes || facts->now_ns - c->silent_ns >= MEDIA))
        facts->state = CAMERA_RETRYING;
    if (!c->silent_ns) {
        facts->state = CAMERA_RUNNING;
        facts->pictures += RATE;
        if ((int)(facts->pictures / RATE % 10) < c->damaged)
            facts->damaged += RATE;
    }
    note(c, judge_step(&c->judge, facts, &limits));
}

static void run(struct camera_of_test *c, int64_t ms)
{
    for (; ms > 0; ms -= TICK_MS)
        tick(c, TICK_MS);
}

static void go(struct camera_of_test *c, int64_t ms, bool closes)
{
    c->silent_ns = c->facts.now_ns;
    c->closes = closes;
    run(c, ms);
    c->silent_ns = 0;
}

static struct camera_of_test *running(void)
{
    struct camera_of_test *c = malloc(sizeof *c);
    open_camera(c);
    run(c, 60000);
    CHECK(c->events == 0, "%d events of a camera that runs", c->events);
    return c;
}

static void test_one_outage(bool closes)
{
    for (int offset = 0; offset < 10; offset++) {
        struct camera_of_test *c = running();
        run(c, offset * 40);
        c->facts.now_ns += offset * 17 * MS;
        const int64_t gone = c->facts.now_ns;
        go(c, 600000, closes);
        CHECK(c->raised[ALERT_DOWN] == 1 && c->events == 1, "%d events", c->events);
        CHECK(c->first_raised_ns - gone <= MEDIA + SECOND, "after %g s",
              (double)(c->first_raised_ns - gone) / 1e9);
        CHECK(c->first_raised_ns - gone >= MEDIA - TICK_MS * MS, "too early, after %g s",
              (double)(c->first_raised_ns - gone) / 1e9);
        const int64_t back = c->facts.now_ns;
        run(c, 400000);
        CHECK(c->cleared[ALERT_DOWN] == 1 && c->events == 2, "%d events", c->events);
        CHECK(c->event_ns[1] - back >= limits.calm_ns &&
                  c->event_ns[1] - back <= limits.calm_ns + SECOND,
              "cleared after %g s", (double)(c->event_ns[1] - back) / 1e9);
        free(c);
    }
}

static void test_start(void)
{
    struct camera_of_test *c = malloc(sizeof *c);
    open_camera(c);
    c->silent_ns = c->facts.now_ns;
    c->closes = true;
    run(c, 14000);
    CHECK(c->events == 0, "%d events of a camera that connects", c->events);
    run(c, 2000);
    CHECK(c->raised[ALERT_DOWN] == 1, "a camera that never came");
    free(c);
    c = running();
    c->facts.state = CAMERA_FAILED;
    c->facts.now_ns += SECOND;
    note(c, judge_step(&c->judge, &c->facts, &limits));
    CHECK(c->raised[ALERT_DOWN] == 1, "a file that cannot be read");
    c->facts.state = CAMERA_ENDED;
    for (int i = 0; i < 10000; i++, c->facts.now_ns += SECOND)
        note(c, judge_step(&c->judge, &c->facts, &limits));
    CHECK(c->events == 1, "a camera that has ended: %d events", c->events);
    free(c);
}

// A camera is paused for an hour: no alert, then or when it connects again.
static void test_pause(void)
{
    struct camera_of_test *c = running();
    c->facts.state = CAMERA_PAUSED;
    for (int i = 0; i < 3600; i++, c->facts.now_ns += SECOND)
        note(c, judge_step(&c->judge, &c->facts, &limits));
    c->facts.state = CAMERA_CONNECTING;
    for (int i = 0; i < 14; i++, c->facts.now_ns += SECOND)
        note(c, judge_step(&c->judge, &c->facts, &limits));
    CHECK(c->events == 0, "%d events of a camera that was paused", c->events);
    c->facts.now_ns += 2 * SECOND;
    note(c, judge_step(&c->judge, &c->facts, &limits));
    CHECK(c->raised[ALERT_DOWN] == 1, "it does not come back");
    free(c);
}

static void test_short_gaps(void)
{
    struct camera_of_test *c = running();
    for (int i = 0; i < 200; i++) {
        go(c, 4000, true);
        run(c, 90000); // fewer than five in five minutes
    }
    CHECK(c->events == 0, "%d events", c->events);
    for (int i = 0; i < 5; i++) {
        go(c, 2000, true);
        run(c, 10000);
    }
    CHECK(c->events == 1 && c->raised[ALERT_FLAPPING] == 1, "%d events", c->events);
    go(c, 200000, true);
    CHECK(c->events == 1, "what flaps and is away for less than calm: %d", c->events);
    run(c, 10000);
    go(c, 301000, true);
    CHECK(c->events == 2 && c->raised[ALERT_DOWN] == 1, "%d events", c->events);
    run(c, HOUR / MS + 301000);
    CHECK(c->events == 3 && c->cleared[ALERT_DOWN] == 1, "%d events", c->events);
    free(c);
}

static int64_t draw(uint64_t *seed, int64_t from, int64_t to)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return from + (int64_t)((*seed >> 33) % (uint64_t)(to - from + 1));
}

static int most_in_an_hour(const struct camera_of_test *c)
{
    int most = 0;
    for (int i = 0, first = 0; i < c->events; i++) {
        while (c->event_ns[i] - c->event_ns[first] >= HOUR)
            first++;
        most = i - first + 1 > most ? i - first + 1 : most;
    }
    return most;
}

// Hours of flapping, by cameras that come back for less than `calm` and for longer: at most two
// events an hour, and hardly more over all hours together.
static void test_flapping(void)
{
    uint64_t seed = 1;
    int slow_events = 0;
    for (int i = 0; i < 1000; i++) {
        struct camera_of_test *c = running();
        const bool closes = i & 1, slow = i & 2;
        const int64_t end = c->facts.now_ns + 3 * HOUR;
        const int64_t most = draw(&seed, 400, slow ? 900000 : 290000);
        const int64_t longest = draw(&seed, 400, slow ? 120000 : 280000);
        while (c->facts.now_ns < end) {
            run(c, draw(&seed, 200, most));
            go(c, draw(&seed, 200, longest) + (closes ? 0 : MEDIA / MS), closes);
        }
        if (slow)
            slow_events += c->events;
        CHECK(most_in_an_hour(c) <= 2, "%d events in an hour: up to %jd ms up, %jd down",
              most_in_an_hour(c), (intmax_t)most, (intmax_t)longest);
        const int before = c->events;
        run(c, HOUR / MS + 310000);
        CHECK(c->events - before <= 1 && !c->judge.alert[ALERT_DOWN].raised &&
                  !c->judge.alert[ALERT_FLAPPING].raised,
              "%d events afterwards", c->events - before);
        free(c);
    }
    CHECK(slow_events > 500, "%d events", slow_events);
}

// The third event within an hour waits until the first is an hour old, and then reports everything.
static void test_third_event(void)
{
    struct camera_of_test *c = running();
    const int64_t gone = c->facts.now_ns;
    go(c, 60000, true);
    run(c, 400000);
    CHECK(c->events == 2 && c->cleared[ALERT_DOWN] == 1, "%d events", c->events);
    const int64_t again = c->facts.now_ns;
    for (int i = 0; i < 3; i++) {
        go(c, 60000, true);
        run(c, 60000);
    }
    const struct alert *down = &c->judge.alert[ALERT_DOWN];
    CHECK(c->events == 2 && down->raised && down->held, "%d events", c->events);
    while (c->events == 2 && c->facts.now_ns - gone < 2 * HOUR)
        run(c, TICK_MS);
    CHECK(c->event_ns[2] - c->event_ns[0] >= HOUR &&
              c->event_ns[2] - c->event_ns[0] < HOUR + SECOND,
          "the third event comes %g s after the first",
          (double)(c->event_ns[2] - c->event_ns[0]) / 1e9);
    CHECK(c->raised[ALERT_DOWN] == 2 && down->interruptions == 2, "%d interruptions",
          down->interruptions);
    CHECK(down->bad_ns >= again - SECOND && down->bad_ns <= again + SECOND, "since %g s after",
          (double)(down->bad_ns - again) / 1e9);
    run(c, HOUR / MS + 1000);
    CHECK(c->events == 4 && c->cleared[ALERT_DOWN] == 2, "%d events", c->events);
    free(c);
}

// Every lasting outage is in an alert, though few alerts are raised.
static void test_none_is_missed(void)
{
    uint64_t seed = 7;
    for (int i = 0; i < 200; i++) {
        struct camera_of_test *c = running();
        for (int k = 0; k < 20; k++) {
            run(c, draw(&seed, 200, 2000000));
            go(c, draw(&seed, MEDIA / MS + 1000, 40000), k & 1);
            CHECK(c->judge.alert[ALERT_DOWN].raised || c->judge.alert[ALERT_FLAPPING].raised,
                  "an outage that nobody hears of");
        }
        run(c, HOUR / MS);
        CHECK(!c->judge.alert[ALERT_DOWN].held && !c->judge.alert[ALERT_FLAPPING].held,
              "what is held is not told within an hour");
        free(c);
    }
}

static void test_clean_hours(void)
{
    struct camera_of_test *c = running();
    for (int64_t i = 0; i < 2000 * 3600; i++)
        tick(c, 1000);
    CHECK(c->events == 0, "%d events in 2000 hours", c->events);
    free(c);
}

static void test_damage(void)
{
    struct camera_of_test *c = running();
    c->damaged = 1;
    run(c, 120000);
    CHECK(c->raised[ALERT_DAMAGED] == 1 && c->events == 1, "%d events", c->events);
    for (int i = 0; i < 60; i++) {
        c->damaged = i & 1;
        run(c, 60000);
    }
    CHECK(c->events == 1, "%d events of a camera with damage now and then", c->events);
    c->damaged = 0;
    run(c, 400000);
    CHECK(c->events == 2 && c->cleared[ALERT_DAMAGED] == 1, "%d events", c->events);
    c->facts.pictures = c->facts.damaged = 0; // reopened
    run(c, 60000);
    CHECK(c->events == 2, "%d events", c->events);
    free(c);
}

static void test_alarms(void)
{
    struct camera_of_test *c = running();
    c->facts.alarms = 1u << ALARM_DARK;
    run(c, 1000);
    CHECK(c->raised[ALERT_SCENE + ALARM_DARK] == 1 && c->events == 1, "%d events", c->events);
    for (int i = 0; i < 30; i++) { // each passing car
        c->facts.alarms ^= 1u << ALARM_DARK;
        run(c, 60000);
    }
    CHECK(c->events == 1, "%d events", c->events);
    c->facts.alarms = 1u << ALARM_MOVED;
    run(c, 400000);
    CHECK(c->events == 3 && c->raised[ALERT_SCENE + ALARM_MOVED] == 1 &&
              c->cleared[ALERT_SCENE + ALARM_DARK] == 1,
          "%d events", c->events);
    free(c);
}

static void test_names(void)
{
    for (int i = 0; i < ALERT_KINDS; i++)
        CHECK(alert_kind_find(alert_kind_name(i)) == (enum alert_kind)i, "%s", alert_kind_name(i));
    CHECK(alert_kind_find("up") == ALERT_KINDS, "no kind");
}

int main(void)
{
    TEST(test_one_outage(false));
    TEST(test_one_outage(true));
    TEST(test_start());
    TEST(test_pause());
    TEST(test_short_gaps());
    TEST(test_flapping());
    TEST(test_third_event());
    TEST(test_none_is_missed());
    TEST(test_clean_hours());
    TEST(test_damage());
    TEST(test_alarms());
    TEST(test_names());
    return test_end();
}
