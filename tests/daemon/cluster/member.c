// The rules of a cluster's member, one by one, each in the situation that it is for. simulation.c
// tests random situations.
#include "daemon/cluster/member.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/documents.h"
#include "tests/cluster/simulation/rules.h"

#include "tests/test.h"

static const int64_t LEASE_NS = 5 * NS_SECOND, FENCE_NS = 3 * NS_SECOND;
enum { STEPS_MAX = 80 }; // of a thread in a second, whatever etcd does

// --- the site

static struct process *start_with(const char *name, int room)
{
    return process_start(
        name, &(struct cluster_config){.site = "yard", .lease = {LEASE_NS}, .room = room});
}

static struct process *start(const char *name)
{
    return start_with(name, 20);
}

// `bad`: the box that refuses the text; NULL: none.
static void put_camera(int number, const char *bad)
{
    static int texts;
    char key[STORE_KEY_SIZE], text[64];
    snprintf(key, sizeof key, SITE_PREFIX "camera/cam%d", number);
    snprintf(text, sizeof text, "cameras: {cam%d: %d} # bad %s;", number, ++texts, bad ? bad : "");
    char *json = camera_document_print(&(struct camera_document){.text = text});
    store_put(key, json);
    free(json);
}

static int64_t check_rules(void)
{
    rules_check();
    return NS_NEVER;
}

static void pass(int64_t ns)
{
    world_run(world.now_ns + ns, check_rules);
}

// Runs until etcd receives the process's next request of that kind.
static void await(const struct process *p, enum store_method method, int64_t (*script)(void))
{
    const int asked = p->asked[method];
    for (int ms = 0; ms < 15000 && p->asked[method] == asked && !world.broken; ms++)
        world_run(world.now_ns + NS_MS, script);
    CHECK(p->asked[method] > asked, "it asks for nothing");
}

static void begin(uint64_t seed)
{
    world_open(seed);
    rules_open();
    rules_touch_all();
}

static void end(void)
{
    CHECK(!world.broken, "%s: %s", world.broken, world.why);
    world_close();
    rules_close();
}

static struct member_health health_of(const struct process *p)
{
    return member_health(cluster_member(p->cluster));
}

static bool shows(const struct process *p, int camera)
{
    const struct shown *shown = &rules.shown[camera];
    return shown->process == p && world.now_ns - shown->last_ns <= 40 * NS_MS;
}

// Starts two boxes that share so many cameras.
static void begin_pair(uint64_t seed, struct process **one, struct process **other, int cameras)
{
    begin(seed);
    for (int i = 0; i < cameras; i++)
        put_camera(i, NULL);
    *one = start("box0");
    *other = start("box1");
    pass(6 * NS_SECOND);
    const char *why = rules_unsettled();
    CHECK(!why, "%s", why);
}

// --- the fence

// Answers come 0.9 s after the request, then none: the fence counts from the request.
static void test_fence(void)
{
    struct process *one, *other;
    for (int requests = 0; requests < 2; requests++) {
        begin_pair(1, &one, &other, 2);
        one->late_ns[STORE_KEEPALIVE] = 900 * NS_MS;
        pass(3 * NS_SECOND);
        const int camera = shows(one, 0) ? 0 : 1;
        await(one, STORE_KEEPALIVE, check_rules);
        pass(905 * NS_MS); // until its answer
        const int64_t last_ns = world.now_ns - 905 * NS_MS;
        one->disturbance = (struct disturbance){
            .until_ns = NS_NEVER, .loses_requests = requests, .loses_answers = !requests};
        pass(FENCE_NS - 1000 * NS_MS - 905 * NS_MS);
        CHECK(shows(one, camera), "%d stops early", requests);
        pass(4 * LEASE_NS);
        CHECK(shows(other, camera), "%d: nobody takes the camera", requests);
        CHECK(rules.longest_black_ns == 0 && one->disturbance.until_ns, "not counted");
        CHECK(process_state(one) != MEMBER_IN, "it is in");
        CHECK(health_of(one).alone_ns - one->boot_ns <= last_ns + NS_SECOND, "alone since %lld",
              (long long)health_of(one).alone_ns);
        end();
    }
}

static int64_t latest_ns; // last picture of the frozen box with its first generation
static struct process *frozen;
static uint32_t frozen_generation;
static int frozen_camera;

static int64_t note_latest(void)
{
    const struct shown *shown = &rules.shown[frozen_camera];
    if (shown->process == frozen && shown->generation == frozen_generation)
        latest_ns = shown->last_ns;
    return check_rules();
}

// A box whose keepalive was answered while it was frozen does not restart after the fence.
static void test_frozen(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct process *one, *other;
        begin_pair(seed, &one, &other, 2);
        frozen = one;
        frozen_camera = shows(one, 0) ? 0 : 1;
        frozen_generation = rules.shown[frozen_camera].generation;
        one->late_ns[STORE_KEEPALIVE] = 20 * NS_MS;
        await(one, STORE_KEEPALIVE, note_latest);
        const int64_t from_ns = world.now_ns;
        // After the fence of the keepalive before; before or after the fence of this one.
        one->frozen_ns = from_ns + FENCE_NS + (seed % 2 ? 200 : -200) * NS_MS;
        world_run(from_ns + 3 * LEASE_NS, note_latest);
        CHECK(latest_ns <= from_ns + 10 * NS_MS, "a picture %lld ms later",
              (long long)((latest_ns - from_ns) / NS_MS));
        CHECK(health_of(one).lost == 1 && process_state(one) == MEMBER_IN, "lost %d times",
              (int)health_of(one).lost);
        end();
    }
}

// --- its key

// If the loop hangs, its cameras end by their fence.
static void test_key_removed(void)
{
    for (int hangs = 0; hangs < 2; hangs++) {
        struct process *one, *other;
        begin_pair(1, &one, &other, 2);
        frozen = one;
        frozen_camera = shows(one, 0) ? 0 : 1;
        frozen_generation = rules.shown[frozen_camera].generation;
        one->hung_ns = hangs ? world.now_ns + NS_SECOND : 0;
        store_put(SITE_PREFIX "node/box0", NULL);
        const int64_t from_ns = world.now_ns;
        world_run(world.now_ns + 10 * NS_SECOND, note_latest);
        CHECK(latest_ns <= from_ns + 100 * NS_MS, "%d: it goes on for %lld ms", hangs,
              (long long)((latest_ns - from_ns) / NS_MS));
        CHECK(process_state(one) == MEMBER_IN && health_of(one).lost == 1, "it is not back");
        CHECK(!rules_unsettled(), "%s", rules_unsettled());
        end();
    }
}

// The lease is revoked without an answer to that: others take the cameras meanwhile.
static void test_stopped(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 2);
    one->disturbance = (struct disturbance){.until_ns = NS_NEVER, .loses_answers = true};
    process_stop(one);
    pass(400 * NS_MS);
    CHECK(process_is_alive(one) && other->cameras.n == 2, "%d cameras", other->cameras.n);
    CHECK(shows(other, 0) && shows(other, 1), "they are not taken at once");
    pass(NS_SECOND);
    CHECK(!process_is_alive(one), "it waits for ever");
    end();
}

static void test_same_name(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 4);
    struct process *second = start("box0");
    for (int i = 0; i < 40; i++) {
        pass(NS_SECOND / 2);
        CHECK(process_state(second) != MEMBER_IN, "it is in");
    }
    CHECK(strstr(health_of(second).error, "a box with the name box0 is in the cluster"), "%s",
          health_of(second).error);
    CHECK(health_of(one).lost == 0 && rules.moves == 0, "the first is disturbed");
    process_kill(one);
    pass(2 * LEASE_NS);
    CHECK(process_state(second) == MEMBER_IN && !rules_unsettled(), "it does not follow");
    end();
}

// Another process gets the key at once: the first owner leaves, and does not overwrite it.
static void test_key_taken(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 4);
    struct process *second = start("box0");
    pass(NS_SECOND);
    const int plans = rules.plans;
    one->silent_ns = NS_NEVER; // its watch
    for (int ms = 0; ms < 15000 && process_state(second) != MEMBER_IN; ms++) {
        rules_send_astray(one);
        if (process_state(second) == MEMBER_JOINING && store_find(SITE_PREFIX "node/box0"))
            store_put(SITE_PREFIX "node/box0", NULL);
        pass(NS_MS);
    }
    pass(3 * LEASE_NS);
    CHECK((process_state(one) == MEMBER_IN) != (process_state(second) == MEMBER_IN), "both");
    CHECK(rules.plans - plans < 6, "%d plans", rules.plans - plans);
    end();
}

// --- answers that come late, or never

static int fewest_cameras; // cameras that a box had
static struct process *reader;

static int64_t note_fewest(void)
{
    const int n = health_of(reader).cameras;
    fewest_cameras = n < fewest_cameras ? n : fewest_cameras;
    return check_rules();
}

// All keys are read again, since etcd has changes that the watch does not report. The answer is
// older than the watch's reports meanwhile.
static void test_old_reading(void)
{
    struct process *other;
    begin_pair(1, &reader, &other, 2);
    reader->late_ns[STORE_GET] = 800 * NS_MS;
    store.now.revision += 5;
    await(reader, STORE_GET, check_rules);
    put_camera(2, NULL);
    pass(100 * NS_MS);
    CHECK(health_of(reader).cameras == 3, "the watch says nothing");
    fewest_cameras = 3;
    world_run(world.now_ns + 5 * NS_SECOND, note_fewest);
    CHECK(fewest_cameras == 3, "a camera was forgotten");
    CHECK(!rules_unsettled(), "%s", rules_unsettled());
    end();
}

// A late answer to a write, that the key was gone, belongs to the membership before.
static void test_old_write(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 2);
    one->late_ns[STORE_COMMIT] = 950 * NS_MS;
    one->silent_ns = world.now_ns + 100 * NS_MS;
    rules_send_astray(one);
    store_put(SITE_PREFIX "node/box0", NULL);
    world.runs = one;
    member_report(cluster_member(one->cluster), &(struct member_facts){.room = 20}); // changed
    world.runs = NULL;
    await(one, STORE_COMMIT, check_rules);
    one->late_ns[STORE_COMMIT] = 0;
    pass(10 * NS_SECOND);
    CHECK(health_of(one).lost == 1, "lost %d times", (int)health_of(one).lost);
    CHECK(!rules_unsettled(), "%s", rules_unsettled());
    end();
}

static void test_lost_answer(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 2);
    one->loses_next = other->loses_next = true;
    put_camera(2, NULL);
    pass(8 * NS_SECOND);
    CHECK(rules.plan->version <= 3, "version %lld", (long long)rules.plan->version);
    CHECK(!rules_unsettled(), "%s", rules_unsettled());
    put_camera(3, NULL); // and it goes on
    pass(3 * NS_SECOND);
    CHECK(!rules_unsettled(), "%s", rules_unsettled());
    end();
}

// A backup of etcd has an older revision, and no watch reports that.
static void test_backup(void)
{
    static struct store_state backup;
    struct process *one, *other;
    begin_pair(1, &one, &other, 2);
    pass(2 * NS_SECOND);
    store_save(&backup);
    put_camera(2, NULL);
    pass(5 * NS_SECOND);
    rules_send_astray(one);
    rules_send_astray(other);
    store_restore(&backup, world.now_ns);
    pass(10 * NS_SECOND);
    CHECK(health_of(one).cameras == 2 && health_of(other).cameras == 2, "they know %d and %d",
          health_of(one).cameras, health_of(other).cameras);
    CHECK(!rules_unsettled(), "%s", rules_unsettled());
    store_free_state(&backup);
    end();
}

// --- cameras that a box cannot run

static void test_refused(void)
{
    struct process *one;
    begin(1);
    put_camera(0, "box0");
    one = start("box0");
    pass(10 * NS_SECOND);
    CHECK(store_find(SITE_PREFIX "trouble/cam0") && one->cameras.n == 0, "it is not refused");
    put_camera(0, NULL);
    pass(2 * NS_SECOND);
    CHECK(shows(one, 0) && !store_find(SITE_PREFIX "trouble/cam0"), "its new text is not tried");
    one->mistake_ns = world.now_ns + 20 * NS_SECOND;
    put_camera(1, NULL);
    pass(30 * NS_SECOND);
    CHECK(store_find(SITE_PREFIX "trouble/cam1"), "it is not refused");
    pass(610 * NS_SECOND);
    CHECK(shows(one, 1) && !store_find(SITE_PREFIX "trouble/cam1"), "it is black for ever");
    end();
}

// A box with a mistake in its own file gives its cameras away, and the others start them.
static void test_own_mistake(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 4);
    one->mistake_ns = NS_NEVER;
    store_put(SITE_PREFIX "drain/box0", "");
    pass(3 * NS_SECOND);
    for (int i = 0; i < 4; i++)
        CHECK(shows(other, i), "cam%d is not shown", i);
    one->mistake_ns = 0;
    pass(3 * NS_SECOND);
    CHECK(one->cameras.n == 0, "they stay in its configuration");
    end();
}

static int count_troubles(int cameras)
{
    char key[STORE_KEY_SIZE];
    int n = 0;
    for (int i = 0; i < cameras; i++) {
        snprintf(key, sizeof key, SITE_PREFIX "trouble/cam%d", i);
        n += store_find(key) != NULL;
    }
    return n;
}

// Cameras that ended while their box was out cannot restart while its own file has a mistake: the
// other box runs them, and they may come back once it is fixed.
static void test_own_mistake_alone(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 4);
    one->mistake_ns = NS_NEVER;
    world.etcd_away_ns = world.now_ns + 4 * NS_SECOND; // short enough for each box to keep its name
    pass(20 * NS_SECOND);
    for (int i = 0; i < 4; i++)
        CHECK(shows(other, i), "cam%d is black", i);
    CHECK(count_troubles(4) == 2, "%d of 2 that it had say why", count_troubles(4));
    one->mistake_ns = 0;
    pass(5 * NS_SECOND);
    CHECK(count_troubles(4) == 0, "the mistake is mended");
    end();
}

// A box whose watch does not show its own committed plan does not commit it again.
static void test_silent_watch_of_own_plan(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 2);
    store_put(SITE_PREFIX "drain/box1", "");
    await(one, STORE_COMMIT, check_rules);
    one->silent_ns = world.now_ns + 3 * NS_SECOND;
    const int64_t requests = world.requests;
    pass(3 * NS_SECOND);
    CHECK(world.requests - requests < 60, "%lld requests", (long long)(world.requests - requests));
    pass(5 * NS_SECOND);
    CHECK(!rules_unsettled(), "%s", rules_unsettled());
    end();
}

// With `alone: keep` cameras go on though etcd goes away again before the plan has the newer lease.
static void test_keep_twice(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 4);
    one->config.cluster.alone = other->config.cluster.alone = ALONE_KEEP;
    pass(2 * NS_SECOND);
    for (int i = 0; i < 2; i++) {
        world.etcd_away_ns = world.now_ns + 5 * NS_SECOND;
        pass(6 * NS_SECOND);
        for (int c = 0; c < 4; c++)
            CHECK(shows(one, c) || shows(other, c), "%d: cam%d stopped", i, c);
    }
    pass(8 * NS_SECOND);
    CHECK(!rules_unsettled(), "%s", rules_unsettled());
    end();
}

// If several boxes cannot run a camera, one is named.
static void test_refused_by_all(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 2);
    one->mistake_ns = other->mistake_ns = world.now_ns + 3 * NS_SECOND;
    put_camera(2, NULL);
    pass(10 * NS_SECOND);
    CHECK(store_find(SITE_PREFIX "trouble/cam2"), "nobody is named");
    const int64_t requests = world.requests;
    pass(10 * NS_SECOND);
    CHECK(world.requests - requests < 60, "%lld requests", (long long)(world.requests - requests));
    end();
}

// --- epochs

static void use_epochs(const struct process *p, int camera, uint32_t epochs)
{
    for (int i = 0; i < p->cameras.n; i++) {
        struct camera *list = p->cameras.list[i];
        if (camera_number(list->config->name) == camera)
            atomic_store(&list->report.epoch, (list->config->generation << 16) + epochs);
    }
}

// A camera that has used up almost all epochs of its generation, or more, gets a new generation on
// its node, so that its later pictures have later epochs. `above`: the generation's step.
static void check_epochs(uint32_t epochs, uint32_t above)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 2);
    struct process *p = shows(one, 0) ? one : other;
    const uint32_t before = rules.shown[0].generation, of_other = rules.shown[1].generation;
    use_epochs(p, 0, epochs);
    pass(4 * NS_SECOND);
    CHECK(shows(p, 0) && rules.shown[0].generation == before + above, "%x: %u after %u", epochs,
          rules.shown[0].generation, before);
    CHECK(rules.shown[1].generation == of_other, "%x: another camera has another one", epochs);
    CHECK(!rules_unsettled(), "%x: %s", epochs, rules_unsettled());
    end();
}

static void test_epochs(void)
{
    check_epochs(0, 0);
    check_epochs(0xefff, 0);
    check_epochs(0xf000, 2);
    check_epochs(0x10005, 2);
    check_epochs(0x1f000, 3);
}

// --- the plan

// A box whose loop hangs while the plan is lost does not seem to obey the next plan.
static void test_plan_lost(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 6);
    other->hung_ns = world.now_ns + 2900 * NS_MS;
    store_put(SITE_PREFIX "plan", NULL);
    store_put(SITE_PREFIX "drain/box1", "");
    pass(15 * NS_SECOND);
    CHECK(rules.plan && one->cameras.n == 6, "box0 has %d", one->cameras.n);
    end();
}

// A camera whose thread was stopped, but which could not be removed, restarts when it is given
// back.
static void test_given_up(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 4);
    one->mistake_ns = other->mistake_ns = world.now_ns + 6 * NS_SECOND;
    store_put(SITE_PREFIX "plan", NULL);
    pass(12 * NS_SECOND);
    CHECK(!rules_unsettled(), "%s", rules_unsettled());
    for (int i = 0; i < 4; i++)
        CHECK(shows(one, i) || shows(other, i), "cam%d is black", i);
    end();
}

// Cameras move to a new box one after another, after the set of boxes has been stable for long.
static void test_balance(void)
{
    begin(1);
    for (int i = 0; i < 8; i++)
        put_camera(i, NULL);
    struct process *one = start_with("box0", 10);
    pass(6 * NS_SECOND);
    struct process *other = start_with("box1", 10);
    pass(58 * NS_SECOND);
    CHECK(one->cameras.n == 8 && other->cameras.n == 0, "%d went at once", other->cameras.n);
    pass(7 * NS_SECOND);
    CHECK(one->cameras.n == 7 && other->cameras.n == 1, "%d went", other->cameras.n);
    pass(10 * NS_SECOND);
    CHECK(other->cameras.n == 2, "%d went", other->cameras.n);
    pass(60 * NS_SECOND);
    CHECK(other->cameras.n >= 3 && other->cameras.n <= 4, "%d went", other->cameras.n);
    end();
}

// A box that cannot read the plan goes on with its cameras: others wait for it, and take none. When
// the plan is removed, all restart.
static void test_unreadable_plan(void)
{
    static const char *const texts[] = {"{", "{\"schema\":2,\"version\":9,\"cameras\":{}}"};
    for (int i = 0; i < 2; i++) {
        struct process *one, *other;
        begin_pair(1, &one, &other, 4);
        store_put(SITE_PREFIX "plan", texts[i]);
        pass(20 * NS_SECOND);
        for (int c = 0; c < 4; c++)
            CHECK(shows(one, c) || shows(other, c), "%s: cam%d is black", texts[i], c);
        CHECK(*health_of(one).error, "it does not say so");
        store_put(SITE_PREFIX "plan", NULL);
        pass(6 * NS_SECOND);
        CHECK(!rules_unsettled(), "%s", rules_unsettled());
        CHECK(!*health_of(one).error, "%s", health_of(one).error);
        end();
    }
}

// --- threads that wait

static void check_steps(struct process *p, const char *while_)
{
    p->most_steps = 0;
    const int64_t requests = world.requests;
    pass(20 * NS_SECOND);
    CHECK(p->most_steps > 0 && p->most_steps < STEPS_MAX, "%s: %d steps in a second", while_,
          p->most_steps);
    CHECK(world.requests - requests < 20 * 20, "%s: %lld requests", while_,
          (long long)(world.requests - requests));
}

static void test_waiting(void)
{
    struct process *one, *other;
    begin_pair(1, &one, &other, 4);
    check_steps(one, "all is well");
    store.full = true;
    put_camera(4, NULL); // a plan is due
    process_stop(other);
    check_steps(one, "the disk is full");
    store.full = false;
    store_put(SITE_PREFIX "plan", "{\"schema\":2,\"version\":9,\"cameras\":{}}");
    check_steps(one, "the plan is of a newer framed");
    store_put(SITE_PREFIX "plan", "{");
    check_steps(one, "the plan cannot be read");
    store_put(SITE_PREFIX "plan", NULL);
    check_steps(start("box0"), "its name is taken");
    world.etcd_away_ns = NS_NEVER;
    check_steps(one, "etcd refuses connections");
    world.etcd_silent = true;
    check_steps(one, "etcd is silent");
    end();
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
    SKIP("it does not know coroutines");
    return test_end();
#endif
    TEST(test_fence());
    TEST(test_frozen());
    TEST(test_key_removed());
    TEST(test_stopped());
    TEST(test_same_name());
    TEST(test_key_taken());
    TEST(test_old_reading());
    TEST(test_old_write());
    TEST(test_lost_answer());
    TEST(test_backup());
    TEST(test_refused());
    TEST(test_own_mistake());
    TEST(test_own_mistake_alone());
    TEST(test_silent_watch_of_own_plan());
    TEST(test_keep_twice());
    TEST(test_refused_by_all());
    TEST(test_epochs());
    TEST(test_plan_lost());
    TEST(test_given_up());
    TEST(test_balance());
    TEST(test_unreadable_plan());
    TEST(test_waiting());
    return test_end();
}
