// Batches: the reason for closing each, the members waited for, their order, waiting and lost
// pictures, and ledgers whose sums always match.
#include "daemon/output/batch.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/daemon/fake_driver.h"
#include "tests/test.h"

enum { MEMBERS_MAX = 16, SIZE = 63 };

struct fixture {
    struct pool *pool;
    struct batch *batch;
    struct consumer consumer;
    struct batch_member member[MEMBERS_MAX];
    struct ledger ledger[MEMBERS_MAX];
    uint64_t ordinal[MEMBERS_MAX];
    int parts[MEMBERS_MAX]; // of each member's pictures; 0: 1
    int n;
    _Atomic bool stop;
    _Atomic int frames; // parked or in flight
    uv_loop_t loop;     // never runs: the tests poll
    struct event_queue *events;
    struct event ready;
};

static void release_frame(void *opaque)
{
    struct fixture *f = opaque;
    atomic_fetch_sub(&f->frames, 1);
}

static int parts_of(const struct fixture *f, int member)
{
    return f->parts[member] ? f->parts[member] : 1;
}

// Completes a parked picture at once.
static void submit(struct batch_grant *grant)
{
    struct fixture *f = grant->member->producer;
    struct item *item = &grant->result->item[grant->first];
    item->ordinal = grant->parked.ordinal;
    item->frame = grant->parked.frame.info;
    item->part = (int)(grant->member - f->member);
    batch_complete(grant->member, grant->result, grant->first, parts_of(f, item->part), 0);
    frame_release(&grant->parked.frame);
}

static _Atomic bool write_hangs; // on a device

static int write_slowly(struct backend *backend, void *to, const void *from, size_t bytes)
{
    while (atomic_load(&write_hangs))
        usleep(1000);
    return fake_export_write(backend, to, from, bytes);
}

struct setting {
    int members, capacity, slots; // slots 0: 3
    int64_t wait_ms;              // below 0: auto
    int per_camera;               // 0: 1
    bool fixed, fills_tail, on_device;
    enum overflow overflow;
    int64_t max_age_ms;
};

static void join(struct fixture *f, int i, const struct setting *setting)
{
    static const char names[MEMBERS_MAX][2] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                               "i", "j", "k", "l", "m", "n", "o", "p"};
    f->member[i] = (struct batch_member){.camera = names[i],
                                         .ledger = &f->ledger[i],
                                         .overflow = setting->overflow,
                                         .max_age_ns = setting->max_age_ms * 1000000,
                                         .producer = f};
    batch_add(f->batch, &f->member[i]);
    batch_join(&f->member[i]);
}

static void start(struct fixture *f, const struct setting *setting)
{
    *f = (struct fixture){.n = setting->members};
    struct pool_options options = {.n = setting->slots ? setting->slots : 3,
                                   .items = setting->capacity,
                                   .name = "batch",
                                   .kind = setting->on_device ? REGION_DEVICE : REGION_PRIVATE,
                                   .overflow = OVERFLOW_DROP_NEWEST,
                                   .undelivered = LOSS_CLIENT};
    CHECK(pool_open(&f->pool, &options) == 0, "pool");
    static struct backend_driver device;
    device = fake_driver;
    device.export_write = write_slowly;
    if (setting->on_device)
        pool_add_backend(f->pool, &device, NULL);
    struct batch_options of_batch = {.pool = f->pool,
                                     .capacity = setting->capacity,
                                     .per_camera = setting->per_camera ? setting->per_camera : 1,
                                     .fixed = setting->fixed,
                                     .fills_tail = setting->fills_tail,
                                     .wait_ns = setting->wait_ms * 1000000};
    CHECK(batch_open(&f->batch, &of_batch) == 0, "batch");
    for (int i = 0; i < f->n; i++)
        join(f, i, setting);
    pool_attach(f->pool, &f->consumer);
    uv_loop_init(&f->loop);
    CHECK(event_queue_open(&f->events, &f->loop) == 0, "events");
    CHECK(batch_start(f->batch, submit, f->events, &f->ready) == 0, "thread");
}

// Marks every member as having just shown a picture.
static void wake_members(struct fixture *f)
{
    for (int i = 0; i < f->n; i++) {
        f->member[i].arrived_ns = f->member[i].measured_ns = monotonic_ns();
        f->member[i].periods = 0;
    }
}

static uint64_t sum(struct fixture *f, enum loss reason)
{
    uint64_t n = 0;
    for (int i = 0; i < MEMBERS_MAX; i++)
        n += atomic_load(&f->ledger[i].lost[reason]);
    return n;
}

static uint64_t emitted(struct fixture *f)
{
    uint64_t n = 0;
    for (int i = 0; i < MEMBERS_MAX; i++)
        n += atomic_load(&f->ledger[i].emitted);
    return n;
}

static void end(struct fixture *f)
{
    for (int i = 0; i < MEMBERS_MAX; i++)
        if (f->member[i].batch) {
            batch_withdraw(&f->member[i], LOSS_STOPPING);
            batch_leave(&f->member[i]);
        }
    CHECK(batch_stop(f->batch, true), "the thread has not ended");
    event_queue_close(f->events);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&f->loop) == 0, "handles are left on the loop");
    pool_detach(f->pool, &f->consumer);
    if (f->pool->n_backends > 0)
        pool_remove_backend(f->pool, NULL);
    pool_close(f->pool);
    batch_close(f->batch);
    for (int i = 0; i < MEMBERS_MAX; i++)
        CHECK(ledger_in_flight(&f->ledger[i]) == 0, "member %d: %d in flight", i,
              (int)ledger_in_flight(&f->ledger[i]));
    CHECK(atomic_load(&f->frames) == 0, "%d frames not released", atomic_load(&f->frames));
}

static int claim(struct fixture *f, int member, struct result **ret)
{
    struct batch_request request = {.fill = {7, 8, 9},
                                    .format = {.order = ORDER_RGB, .dtype = DTYPE_U8},
                                    .size = SIZE,
                                    .parts = parts_of(f, member),
                                    .ordinal = f->ordinal[member]};
    int first = 0;
    ledger_offer(&f->ledger[member]);
    int rc = batch_claim(&f->member[member], &request, ret, &first);
    if (rc < 0)
        return rc;
    struct item *item = &(*ret)->item[first];
    item->frame = (struct frame_info){.received_ns = monotonic_ns(), .decoded_ns = monotonic_ns()};
    item->ordinal = f->ordinal[member]++;
    item->part = member;
    return first;
}

static void park(struct fixture *f, int member)
{
    struct parked parked = {
        .ordinal = f->ordinal[member]++,
        .frame = {.owner = f,
                  .release = release_frame,
                  .info = {.received_ns = monotonic_ns(), .decoded_ns = monotonic_ns()}}};
    atomic_fetch_add(&f->frames, 1);
    batch_park(&f->member[member], &parked, parts_of(f, member));
}

// Feeds a member's picture, completed at once. Returns false if it was parked or lost.
static bool feed(struct fixture *f, int member)
{
    struct result *result;
    batch_wait(&f->member[member], BATCH_PARKED_WAIT - 1, &f->stop);
    int first = claim(f, member, &result);
    if (first >= 0)
        batch_complete(&f->member[member], result, first, parts_of(f, member), 0);
    else if (first == -EAGAIN)
        park(f, member);
    else
        ledger_lose(&f->ledger[member], first == -ENOTCONN ? LOSS_CLIENT
                                        : first == -ENOSPC ? LOSS_CONFIG
                                                           : LOSS_STOPPING);
    return first >= 0;
}

// Returns the next batch, within a second.
static struct result *next(struct fixture *f)
{
    struct result *result = NULL;
    for (int i = 0; i < 2000 && !(result = pool_acquire(f->pool, &f->consumer)); i++)
        usleep(500);
    return result;
}

static int filled(const struct result *result)
{
    int n = 0;
    for (int i = 0; i < result->n_items; i++)
        n += result->item[i].state != ITEM_EMPTY;
    return n;
}

static void expect(struct fixture *f, enum batch_close reason, int elements)
{
    struct result *result = next(f);
    CHECK(result && result->closed_by == reason && filled(result) == elements,
          "reason %d, %d elements", result ? (int)result->closed_by : -1,
          result ? filled(result) : 0);
    if (result)
        pool_release(f->pool, &f->consumer, true);
}

// --- closing

static void test_full(void)
{
    struct fixture f;
    start(&f, &(struct setting){.members = 4, .capacity = 3, .wait_ms = 1000});
    wake_members(&f);
    for (int i = 0; i < 4; i++)
        feed(&f, i);
    expect(&f, CLOSED_FULL, 3);
    for (int i = 0; i < 2; i++)
        feed(&f, i);
    expect(&f, CLOSED_FULL, 3);
    CHECK(emitted(&f) == 6, "%d emitted", (int)emitted(&f));
    end(&f);
}

static void test_all(void)
{
    struct fixture f;
    start(&f, &(struct setting){.members = 3, .capacity = 8, .wait_ms = 1000});
    feed(&f, 0); // alone: no other has ever shown a picture
    expect(&f, CLOSED_ALL, 1);
    feed(&f, 1); // waits for 0
    CHECK(!pool_has_next(f.pool, &f.consumer), "closed without member 0");
    feed(&f, 0);
    expect(&f, CLOSED_ALL, 2);
    end(&f);
}

static void test_wait(void)
{
    struct fixture f;
    start(&f, &(struct setting){.members = 2, .capacity = 3, .wait_ms = 30});
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 1);
    const int64_t begun_ns = monotonic_ns();
    feed(&f, 0);
    struct result *result = next(&f);
    CHECK(result && result->closed_by == CLOSED_WAIT && filled(result) == 1, "not by its wait");
    CHECK(result && result->closed_ns - begun_ns >= 30 * 1000000, "after %d us",
          result ? (int)((result->closed_ns - begun_ns) / 1000) : 0);
    pool_release(f.pool, &f.consumer, true);
    feed(&f, 0); // member 1, awaited in vain, costs one wait
    expect(&f, CLOSED_ALL, 1);
    feed(&f, 1); // and counts again once it is back
    feed(&f, 0);
    expect(&f, CLOSED_ALL, 2);
    end(&f);
}

static void test_reload(void)
{
    const struct setting setting = {.members = 2, .capacity = 4, .wait_ms = 1000};
    struct fixture f;
    start(&f, &setting);
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 1);
    feed(&f, 0);
    join(&f, 2, &setting);
    expect(&f, CLOSED_RELOAD, 1);
    feed(&f, 2);
    batch_withdraw(&f.member[2], LOSS_STOPPING);
    batch_leave(&f.member[2]); // its picture stays
    expect(&f, CLOSED_RELOAD, 1);
    end(&f);
}

static void test_stopping(void)
{
    struct fixture f;
    start(&f, &(struct setting){.members = 2, .capacity = 4, .wait_ms = 1000});
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 1);
    feed(&f, 0);
    pool_set_sink(f.pool, POOL_SINK_FINISHING);
    expect(&f, CLOSED_STOPPING, 1);
    CHECK(!feed(&f, 0) && sum(&f, LOSS_STOPPING) == 1, "taken after the end");
    end(&f);
}

// --- awaited members

static void test_live(void)
{
    struct fixture f;
    start(&f, &(struct setting){.members = 2, .capacity = 4, .wait_ms = 1000});
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 1);
    usleep(260 * 1000); // 1 is no longer live
    feed(&f, 0);
    expect(&f, CLOSED_ALL, 1);
    end(&f);
}

// The shortest period less the time that the client holds a batch; 100 ms if unknown.
static void test_auto(void)
{
    struct fixture f;
    int64_t waited_ns = 0;
    start(&f, &(struct setting){.members = 2, .capacity = 2, .wait_ms = -1});
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 1);
    feed(&f, 0);
    struct result *result = next(&f);
    waited_ns = result ? result->closed_ns - result->opened_ns : 0;
    CHECK(result && result->closed_by == CLOSED_WAIT && waited_ns >= 100 * 1000000,
          "%d us before there are periods", (int)(waited_ns / 1000));
    pool_release(f.pool, &f.consumer, true);
    for (int i = 0; i < 12; i++) { // pairs every 20 ms
        feed(&f, 1);
        feed(&f, 0);
        expect(&f, CLOSED_FULL, 2);
        usleep(20 * 1000);
    }
    feed(&f, 0);
    result = next(&f);
    waited_ns = result ? result->closed_ns - result->opened_ns : 0;
    CHECK(result && waited_ns >= 15 * 1000000 && waited_ns < 90 * 1000000, "%d us with them",
          (int)(waited_ns / 1000));
    pool_release(f.pool, &f.consumer, true);
    end(&f);
}

// --- places

static void test_per_camera(void)
{
    struct fixture f;
    start(&f, &(struct setting){.members = 2, .capacity = 4, .per_camera = 2, .wait_ms = 1000});
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 1);
    CHECK(feed(&f, 0) && feed(&f, 0), "no room for two");
    CHECK(!feed(&f, 0), "room for three");
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 3); // the third goes into the next
    usleep(20 * 1000);
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 2);
    end(&f);
}

static void test_fixed(void)
{
    struct fixture f;
    start(&f, &(struct setting){.members = 3, .capacity = 3, .wait_ms = 40, .fixed = true});
    wake_members(&f);
    for (int i = 2; i >= 0; i--)
        feed(&f, i);
    struct result *result = next(&f);
    for (int i = 0; result && i < 3; i++)
        CHECK(result->item[i].part == i, "member %d has place %d", result->item[i].part, i);
    pool_release(f.pool, &f.consumer, true);
    feed(&f, 2);
    feed(&f, 0);
    result = next(&f);
    CHECK(result && result->item[1].state == ITEM_EMPTY && result->item[2].part == 2 &&
              filled(result) == 2,
          "no hole for member 1");
    pool_release(f.pool, &f.consumer, true);
    end(&f);
}

// Members whose pictures have several items get adjacent places; one without room loses its
// pictures, and is not awaited.
static void test_fixed_parts(void)
{
    const struct setting setting = {.members = 4, .capacity = 5, .wait_ms = 1000, .fixed = true};
    struct fixture f;
    int places[5] = {0};
    start(&f, &setting);
    f.parts[0] = f.parts[1] = 2;
    f.parts[2] = 1;
    f.parts[3] = 2;
    wake_members(&f);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            CHECK(feed(&f, i), "round %d: member %d has no place", round, i);
        struct result *result = next(&f);
        CHECK(result && filled(result) == 5, "%d filled", result ? filled(result) : -1);
        for (int i = 0; result && i < 5; i += i < 4 ? 2 : 1)
            places[i] += result->item[i].part;
        pool_release(f.pool, &f.consumer, true);
        CHECK(!feed(&f, 3), "a place for member 3");
    }
    CHECK(places[0] == 0 && places[2] == 3 && places[4] == 6, "%d %d %d", places[0], places[2],
          places[4]);
    CHECK(sum(&f, LOSS_CONFIG) == 3, "%d refused", (int)sum(&f, LOSS_CONFIG));
    f.parts[0] = 1; // a picture of another size has another place
    feed(&f, 0);
    feed(&f, 1);
    feed(&f, 2);
    expect(&f, CLOSED_ALL, 4);
    end(&f);
}

// The place of a member that has not shown anything yet is kept for it.
static void test_fixed_absent(void)
{
    const struct setting setting = {.members = 2, .capacity = 2, .wait_ms = 40, .fixed = true};
    struct fixture f;
    start(&f, &setting);
    join(&f, 2, &setting);
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 1);
    CHECK(!feed(&f, 2) && sum(&f, LOSS_CONFIG) == 1, "member 2 has the place of member 0");
    batch_leave(&f.member[1]);
    CHECK(feed(&f, 2) && f.member[2].first == 1, "place %d", f.member[2].first);
    expect(&f, CLOSED_ALL, 1);
    end(&f);
}

// A batch with too little room for the parked pictures is closed early.
static void test_too_little_room(void)
{
    struct fixture f;
    start(&f, &(struct setting){.members = 2, .capacity = 8, .wait_ms = 1000});
    f.parts[0] = f.parts[1] = 5;
    wake_members(&f);
    const int64_t begun_ns = monotonic_ns();
    for (int i = 0; i < 6; i++) {
        feed(&f, i % 2);
        if (i > 0)
            expect(&f, CLOSED_ALL, 5);
    }
    CHECK(monotonic_ns() - begun_ns < 500 * 1000000, "it waited");
    end(&f);
    CHECK(sum(&f, LOSS_OVERFLOW) == 0, "%d lost", (int)sum(&f, LOSS_OVERFLOW));
}

// A camera that a reload replaces keeps its place.
static void test_fixed_again(void)
{
    const struct setting setting = {.members = 3, .capacity = 3, .wait_ms = 40, .fixed = true};
    struct fixture f;
    start(&f, &setting);
    struct batch_member former = {.camera = "b", .ledger = &f.ledger[9]};
    batch_leave(&f.member[1]);
    batch_add(f.batch, &former);
    join(&f, 1, &setting);
    CHECK(f.member[1].index == 1 && former.index == 1, "place %d", f.member[1].index);
    batch_leave(&former);
    join(&f, 3, &setting);
    CHECK(f.member[3].index == 3, "place %d", f.member[3].index);
    end(&f);
}

// A batch whose pictures all failed is dropped and uses no number. The next picture reports the
// loss and a new epoch.
static void test_all_failed(void)
{
    struct fixture f;
    struct result *result;
    start(&f, &(struct setting){.members = 2, .capacity = 2, .wait_ms = 30});
    f.member[1].arrived_ns = monotonic_ns();
    int first = claim(&f, 0, &result);
    batch_complete(&f.member[0], result, first, 1, -EIO);
    usleep(60 * 1000);
    CHECK(!pool_acquire(f.pool, &f.consumer), "an empty batch");
    f.member[1].arrived_ns = 0;
    feed(&f, 0);
    result = next(&f);
    CHECK(result && result->batch_sequence == 0, "a number was taken");
    CHECK(result && result->item[0].lost == 1 && result->item[0].new_epoch, "lost %d, epoch %d",
          result ? (int)result->item[0].lost : -1, result && result->item[0].new_epoch);
    uint64_t closed = 0;
    for (int i = 0; i <= CLOSED_STOPPING; i++)
        closed += atomic_load(&f.batch->closed[i]);
    CHECK(closed == 1, "%d counted", (int)closed);
    pool_release(f.pool, &f.consumer, true);
    end(&f);
}

// The place of a failed job is given out again while the batch is open.
static void test_place_again(void)
{
    struct fixture f;
    struct result *result, *same;
    start(&f, &(struct setting){.members = 3, .capacity = 2, .wait_ms = 1000});
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 1);
    int first = claim(&f, 0, &result);
    batch_complete(&f.member[0], result, first, 1, -EIO);
    CHECK(sum(&f, LOSS_BACKEND) == 1, "not lost");
    CHECK(claim(&f, 0, &same) == first && same == result, "not given out again");
    int second = claim(&f, 1, &same); // full
    CHECK(same == result && second != first, "place %d", second);
    batch_complete(&f.member[1], result, second, 1, -EIO);
    batch_complete(&f.member[0], result, first, 1, 0);
    result = next(&f);
    CHECK(result && result->item[second].status == -EIO, "the hole is not marked");
    pool_release(f.pool, &f.consumer, true);
    CHECK(emitted(&f) == 2 && sum(&f, LOSS_BACKEND) == 2, "%d emitted, %d lost", (int)emitted(&f),
          (int)sum(&f, LOSS_BACKEND));
    end(&f);
}

// Elements without a picture contain fill, whatever they contained before.
static void test_tail(bool on_device)
{
    enum { PLANE = SIZE / 3 };
    struct fixture f;
    const int written = exports_written;
    start(&f, &(struct setting){.members = 2,
                                .capacity = 2,
                                .wait_ms = 1000,
                                .fills_tail = true,
                                .on_device = on_device});
    for (int round = 0; round < 6; round++) {
        struct result *result;
        if (round == 3)
            wake_members(&f); // makes a batch of this slot full
        for (int i = 0; i <= (round == 3); i++) {
            int first = claim(&f, i, &result);
            memset((uint8_t *)result->data + first * SIZE, 100 + i, SIZE);
            result->item[first].valid_op = 1;
            batch_complete(&f.member[i], result, first, 1, 0);
        }
        result = next(&f);
        const uint8_t *second = result ? (uint8_t *)result->data + SIZE : NULL;
        CHECK(second &&
                  (round == 3 ? second[0] == 101
                              : second[0] == 7 && second[PLANE] == 8 && second[2 * PLANE] == 9),
              "round %d: %d", round, second ? second[0] : -1);
        pool_release(f.pool, &f.consumer, true);
        f.member[1].arrived_ns = 0;
    }
    CHECK((exports_written > written) == on_device, "not by the device");
    end(&f);
}

// The same if the job failed after the batch was closed.
static void test_tail_of_failed(void)
{
    struct fixture f;
    struct result *result;
    start(&f, &(struct setting){.members = 2, .capacity = 2, .wait_ms = 1000, .fills_tail = true});
    wake_members(&f);
    const int first = claim(&f, 0, &result), second = claim(&f, 1, &result);
    memset(result->data, 100, 2 * SIZE);
    batch_complete(&f.member[1], result, second, 1, -EIO);
    batch_complete(&f.member[0], result, first, 1, 0);
    result = next(&f);
    const uint8_t *data = result ? result->data : NULL;
    CHECK(data && data[first * SIZE] == 100 && data[second * SIZE] == 7, "%d %d",
          data ? data[first * SIZE] : -1, data ? data[second * SIZE] : -1);
    pool_release(f.pool, &f.consumer, true);
    end(&f);
}

// An element without a picture, before others that have one, contains fill too: never a picture of
// an earlier batch.
static void test_hole(void)
{
    struct fixture f;
    struct result *result;
    start(&f,
          &(struct setting){.members = 3, .capacity = 3, .slots = 1, .wait_ms = 50, .fixed = true});
    for (int round = 0; round < 2; round++) {
        wake_members(&f);
        if (round > 0)
            f.member[1].arrived_ns = 0;
        for (int i = 0; i < 3; i += 1 + round) {
            const int first = claim(&f, i, &result);
            memset((uint8_t *)result->data + first * SIZE, 100 + i, SIZE);
            batch_complete(&f.member[i], result, first, 1, 0);
        }
        result = next(&f);
        const uint8_t *second = result ? (uint8_t *)result->data + SIZE : NULL;
        CHECK(second && filled(result) == 3 - round && second[0] == (round == 0 ? 101 : 7),
              "round %d: the second element is %d", round, second ? second[0] : -1);
        pool_release(f.pool, &f.consumer, true);
    }
    end(&f);
}

static _Atomic bool finished;

static void *finish_sink(void *pool)
{
    pool_set_sink(pool, POOL_SINK_FINISHING);
    atomic_store(&finished, true);
    return NULL;
}

// Finishing a batch does not wait for the device that fills its tail.
static void test_finish_beside_hanging_device(void)
{
    struct fixture f;
    struct result *result;
    pthread_t loop;
    start(
        &f,
        &(struct setting){
            .members = 2, .capacity = 2, .wait_ms = 60000, .fills_tail = true, .on_device = true});
    wake_members(&f);
    const int first = claim(&f, 0, &result);
    batch_complete(&f.member[0], result, first, 1, 0);
    atomic_store(&write_hangs, true);
    pthread_create(&loop, NULL, finish_sink, f.pool);
    for (int i = 0; i < 5000 && !atomic_load(&finished); i++)
        usleep(1000);
    CHECK(atomic_load(&finished), "the loop thread waits for the device");
    CHECK(pool_is_filling(f.pool), "the sink would not wait for the fill");
    atomic_store(&write_hangs, false);
    pthread_join(loop, NULL);
    result = next(&f);
    CHECK(result && filled(result) == 1 && ((uint8_t *)result->data)[SIZE] == 7, "no fill");
    pool_release(f.pool, &f.consumer, true);
    CHECK(!pool_is_filling(f.pool), "still filling");
    end(&f);
}

// --- waiting members

// While the client holds all results, each member's newest pictures wait; the members served
// longest ago come first.
static void test_fairness(void)
{
    enum { MEMBERS = 7, CAPACITY = 3, ROUNDS = 40 };
    struct fixture f;
    int served[MEMBERS] = {0}, least = ROUNDS * MEMBERS, most = 0;
    start(&f, &(struct setting){.members = MEMBERS, .capacity = CAPACITY, .wait_ms = 1000});
    wake_members(&f);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MEMBERS; i++)
            feed(&f, i);
        struct result *result = next(&f);
        CHECK(result && filled(result) == CAPACITY, "round %d: %d elements", round,
              result ? filled(result) : 0);
        for (int i = 0; result && i < CAPACITY; i++)
            served[result->item[i].part]++;
        pool_release(f.pool, &f.consumer, true);
    }
    for (int i = 0; i < MEMBERS; i++) {
        least = served[i] < least ? served[i] : least;
        most = served[i] > most ? served[i] : most;
    }
    CHECK(most - least <= 1, "between %d and %d times", least, most);
    CHECK(sum(&f, LOSS_OVERFLOW) > 0, "nothing was replaced");
    end(&f);
}

// Newer pictures replace parked ones, or are lost.
static void test_replaced(enum overflow overflow, uint64_t expected)
{
    struct fixture f;
    start(&f,
          &(struct setting){.members = 2, .capacity = 2, .wait_ms = 1000, .overflow = overflow});
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 1);
    feed(&f, 0);
    for (int i = 0; i < BATCH_PARKED_MAX + 3; i++)
        feed(&f, 0);
    CHECK(sum(&f, LOSS_OVERFLOW) == 3, "%d lost", (int)sum(&f, LOSS_OVERFLOW));
    feed(&f, 1);
    expect(&f, CLOSED_FULL, 2);
    usleep(20 * 1000);
    feed(&f, 1);
    struct result *result = next(&f);
    CHECK(result && result->item[0].ordinal == expected, "frame %d",
          result ? (int)result->item[0].ordinal : -1);
    pool_release(f.pool, &f.consumer, true);
    end(&f);
}

static void test_drop_oldest(void)
{
    test_replaced(OVERFLOW_DROP_OLDEST, 4); // 0 was served; 1, 2 and 3 made room
}

static void test_drop_newest(void)
{
    test_replaced(OVERFLOW_DROP_NEWEST, 1);
}

static void test_late(void)
{
    struct fixture f;
    start(&f, &(struct setting){.members = 2, .capacity = 2, .wait_ms = 1000, .max_age_ms = 50});
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 1);
    feed(&f, 0);
    feed(&f, 0); // waits
    usleep(100 * 1000);
    feed(&f, 1);
    expect(&f, CLOSED_FULL, 2);
    usleep(20 * 1000);
    CHECK(sum(&f, LOSS_LATE) == 1, "%d late", (int)sum(&f, LOSS_LATE));
    end(&f);
}

struct producer {
    struct fixture *f;
    pthread_t thread;
    int member, n;
};

static void *produce(void *opaque)
{
    struct producer *producer = opaque;
    for (int i = 0; i < producer->n && !atomic_load(&producer->f->stop); i++)
        feed(producer->f, producer->member);
    return NULL;
}

// With OVERFLOW_WAIT nothing is lost, in any order of threads.
static void test_nothing_lost(void)
{
    enum { MEMBERS = 5, FRAMES = 400 };
    struct fixture f;
    struct producer producer[MEMBERS];
    uint64_t expected[MEMBERS] = {0};
    int wrong = 0, n = 0;
    start(&f, &(struct setting){
                  .members = MEMBERS, .capacity = 3, .wait_ms = 20, .overflow = OVERFLOW_WAIT});
    for (int i = 0; i < MEMBERS; i++) {
        producer[i] = (struct producer){.f = &f, .member = i, .n = FRAMES};
        pthread_create(&producer[i].thread, NULL, produce, &producer[i]);
    }
    while (n < MEMBERS * FRAMES) {
        struct result *result = next(&f);
        if (!result)
            break;
        for (int i = 0; i < result->n_items; i++) {
            if (result->item[i].state == ITEM_EMPTY)
                continue;
            wrong += result->item[i].ordinal != expected[result->item[i].part]++;
            n++;
        }
        pool_release(f.pool, &f.consumer, true);
    }
    for (int i = 0; i < MEMBERS; i++)
        pthread_join(producer[i].thread, NULL);
    CHECK(n == MEMBERS * FRAMES && wrong == 0, "%d frames, %d out of order", n, wrong);
    CHECK(emitted(&f) == MEMBERS * FRAMES, "%d emitted", (int)emitted(&f));
    end(&f);
}

// Pictures wait as long as needed; the pool may drop results again once no member needs them all.
static void test_policy(void)
{
    struct fixture f;
    const struct setting setting = {
        .members = 1, .capacity = 1, .wait_ms = 5, .slots = 2, .overflow = OVERFLOW_WAIT};
    start(&f, &setting);
    join(&f, 1, &(struct setting){.overflow = OVERFLOW_DROP_OLDEST});
    CHECK(pool_waits(f.pool), "gives up results of a file");
    for (int i = 0; i < 4; i++)
        feed(&f, 0); // two are ready and two parked
    usleep(600 * 1000);
    CHECK(sum(&f, LOSS_OVERFLOW) == 0 && f.member[0].n_parked == 2, "%d lost, %d parked",
          (int)sum(&f, LOSS_OVERFLOW), f.member[0].n_parked);
    for (int i = 0; i < 4; i++)
        expect(&f, CLOSED_FULL, 1);
    batch_leave(&f.member[0]);
    CHECK(!pool_waits(f.pool), "keeps all for nobody");
    end(&f);
    CHECK(emitted(&f) == 4, "%d emitted", (int)emitted(&f));
}

// A stuck client holds pictures of a removed camera; the camera's sums are closed nevertheless.
static void test_forgotten(void)
{
    struct fixture f;
    start(&f, &(struct setting){.members = 2, .capacity = 2, .wait_ms = 1000});
    wake_members(&f);
    for (int i = 0; i < 4; i++) // one is half delivered, one is ready
        feed(&f, i % 2);
    CHECK(next(&f) && pool_detach_payload(f.pool, &f.consumer) == 0, "no batch");
    pool_forget_ledger(f.pool, &f.ledger[1]);
    CHECK(ledger_in_flight(&f.ledger[1]) == 0 && sum(&f, LOSS_STOPPING) == 2, "%d in flight",
          (int)ledger_in_flight(&f.ledger[1]));
    pool_release(f.pool, &f.consumer, true);
    expect(&f, CLOSED_FULL, 2);
    CHECK(emitted(&f) == 2 && atomic_load(&f.ledger[0].emitted) == 2, "%d emitted",
          (int)emitted(&f));
    end(&f);
}

static void *stop_soon(void *opaque)
{
    struct fixture *f = opaque;
    usleep(50 * 1000);
    atomic_store(&f->stop, true);
    pool_wake(f->pool);
    return NULL;
}

// A thread that waits for its parked pictures is woken to stop.
static void test_woken(void)
{
    struct fixture f;
    pthread_t thread;
    start(&f, &(struct setting){
                  .members = 2, .capacity = 2, .wait_ms = 1000, .overflow = OVERFLOW_WAIT});
    feed(&f, 1);
    expect(&f, CLOSED_ALL, 1);
    for (int i = 0; i < 1 + BATCH_PARKED_WAIT; i++)
        feed(&f, 0);
    pthread_create(&thread, NULL, stop_soon, &f);
    const int64_t begun_ns = monotonic_ns();
    batch_wait(&f.member[0], BATCH_PARKED_WAIT - 1, &f.stop);
    CHECK(f.member[0].n_parked == BATCH_PARKED_WAIT && monotonic_ns() - begun_ns > 40 * 1000000,
          "%d parked", f.member[0].n_parked);
    pthread_join(thread, NULL);
    end(&f);
    CHECK(sum(&f, LOSS_STOPPING) == BATCH_PARKED_WAIT, "%d", (int)sum(&f, LOSS_STOPPING));
}

// Without a client every picture is lost at once, and no thread waits.
static void test_no_client(void)
{
    struct fixture f;
    start(&f, &(struct setting){.members = 2, .capacity = 2, .wait_ms = 10});
    pool_detach(f.pool, &f.consumer);
    CHECK(!feed(&f, 0) && sum(&f, LOSS_CLIENT) == 1, "taken for nobody");
    pool_attach(f.pool, &f.consumer);
    CHECK(feed(&f, 0), "not taken");
    expect(&f, CLOSED_ALL, 1);
    end(&f);
}

// Members come and go a hundred times while all send: every sum is exact.
static void test_members(void)
{
    enum { MEMBERS = 4 };
    const struct setting setting = {.members = MEMBERS, .capacity = 3, .wait_ms = 5};
    struct fixture f;
    struct producer producer[MEMBERS - 1];
    start(&f, &setting);
    for (int i = 0; i < MEMBERS - 1; i++) {
        producer[i] = (struct producer){.f = &f, .member = i, .n = 100000};
        pthread_create(&producer[i].thread, NULL, produce, &producer[i]);
    }
    for (int i = 0; i < 100; i++) {
        feed(&f, MEMBERS - 1);
        batch_withdraw(&f.member[MEMBERS - 1], LOSS_STOPPING);
        batch_leave(&f.member[MEMBERS - 1]);
        usleep(300);
        for (int n = 0; n < 4 && pool_acquire(f.pool, &f.consumer); n++)
            pool_release(f.pool, &f.consumer, n % 2);
        join(&f, MEMBERS - 1, &setting);
    }
    atomic_store(&f.stop, true);
    for (int i = 0; i < MEMBERS - 1; i++)
        pthread_join(producer[i].thread, NULL);
    CHECK(sum(&f, LOSS_OVERFLOW) > 0 && emitted(&f) > 0, "%d lost, %d emitted",
          (int)sum(&f, LOSS_OVERFLOW), (int)emitted(&f));
    end(&f);
}

int main(void)
{
    TEST(test_full());
    TEST(test_all());
    TEST(test_wait());
    TEST(test_reload());
    TEST(test_stopping());
    TEST(test_live());
    TEST(test_auto());
    TEST(test_per_camera());
    TEST(test_fixed());
    TEST(test_fixed_parts());
    TEST(test_fixed_again());
    TEST(test_fixed_absent());
    TEST(test_too_little_room());
    TEST(test_all_failed());
    TEST(test_tail_of_failed());
    TEST(test_policy());
    TEST(test_forgotten());
    TEST(test_place_again());
    TEST(test_tail(false));
    TEST(test_tail(true));
    TEST(test_hole());
    TEST(test_finish_beside_hanging_device());
    TEST(test_fairness());
    TEST(test_drop_oldest());
    TEST(test_drop_newest());
    TEST(test_late());
    TEST(test_nothing_lost());
    TEST(test_woken());
    TEST(test_no_client());
    TEST(test_members());
    return test_end();
}
