// The pool of results: order of readiness, each overflow policy, results held by consumers, results
// of several items, and a ledger whose sums always match.
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/output/pool.h"
#include "tests/test.h"

struct fixture {
    struct ledger ledger;
    struct pool *pool;
    struct consumer consumer, other;
    _Atomic bool stop;
    uint64_t ordinal;
};

static void start_items(struct fixture *f, int n, int items, enum overflow overflow)
{
    struct pool_options options = {.n = n,
                                   .items = items,
                                   .kind = REGION_PRIVATE,
                                   .overflow = overflow,
                                   .undelivered = LOSS_CLIENT};
    *f = (struct fixture){0};
    CHECK(pool_open(&f->pool, &options) == 0, "open");
}

// Starts with one consumer.
static void start(struct fixture *f, int n, enum overflow overflow)
{
    start_items(f, n, 1, overflow);
    pool_attach(f->pool, &f->consumer);
}

static uint64_t lost(struct fixture *f, enum loss reason)
{
    return atomic_load(&f->ledger.lost[reason]);
}

static void end(struct fixture *f)
{
    pool_close(f->pool);
    CHECK(ledger_in_flight(&f->ledger) == 0, "%d in flight", (int)ledger_in_flight(&f->ledger));
}

// Claims a result with all of its items, of `size` bytes each.
static int claim(struct fixture *f, size_t size, struct result **ret)
{
    struct pool_request request = {
        .size = size, .items = f->pool->options.items, .ledger = &f->ledger, .stop = &f->stop};
    ledger_offer(&f->ledger);
    int rc = pool_claim(f->pool, &request, ret);
    if (rc < 0)
        ledger_lose(&f->ledger, LOSS_OVERFLOW);
    else
        (*ret)->item[0].ordinal = f->ordinal;
    f->ordinal++;
    return rc;
}

static struct result *claim_one(struct fixture *f)
{
    struct result *result = NULL;
    int rc = claim(f, 1000, &result);
    CHECK(rc == 0, "claim: %d", rc);
    return result;
}

static void feed(struct fixture *f)
{
    struct result *result = claim_one(f);
    if (result)
        pool_complete(f->pool, result, 0, 1, 0);
}

static void deliver_to(struct fixture *f, struct consumer *consumer, uint64_t expected)
{
    struct result *result = pool_acquire(f->pool, consumer);
    CHECK(result && result->item[0].ordinal == expected, "expected frame %d", (int)expected);
    if (result)
        pool_release(f->pool, consumer, true);
}

static void deliver(struct fixture *f, uint64_t expected)
{
    deliver_to(f, &f->consumer, expected);
}

static void test_order(void)
{
    struct fixture f;
    start(&f, 3, OVERFLOW_DROP_OLDEST);
    struct result *first = claim_one(&f), *second = claim_one(&f), *third = claim_one(&f);
    pool_complete(f.pool, third, 0, 1, 0);
    pool_complete(f.pool, second, 0, 1, -EIO);
    CHECK(!pool_has_next(f.pool, &f.consumer), "the first is not done");
    CHECK(!pool_acquire(f.pool, &f.consumer), "nothing is ready");
    pool_complete(f.pool, first, 0, 1, 0);
    CHECK(lost(&f, LOSS_BACKEND) == 1, "the second failed");
    deliver(&f, 0);
    deliver(&f, 2);
    CHECK(!pool_has_next(f.pool, &f.consumer), "there is a fourth");
    CHECK(ledger_in_flight(&f.ledger) == 0, "not all are free");
    CHECK(atomic_load(&f.ledger.emitted) == 2, "emitted");
    end(&f);
}

static void test_drop_oldest(void)
{
    struct fixture f;
    struct result *result;
    start(&f, 3, OVERFLOW_DROP_OLDEST);
    for (int i = 0; i < 3; i++)
        feed(&f);
    CHECK(pool_acquire(f.pool, &f.consumer) != NULL, "nothing is ready");
    feed(&f); // evicts frame 1: frame 0 is held
    CHECK(lost(&f, LOSS_OVERFLOW) == 1, "one evicted");
    pool_release(f.pool, &f.consumer, true);
    deliver(&f, 2);
    deliver(&f, 3);
    CHECK(atomic_load(&f.ledger.emitted) == 3, "emitted");

    for (int i = 0; i < 3; i++)
        claim_one(&f);
    int rc = claim(&f, 1000, &result);
    CHECK(rc == -EAGAIN, "nothing is ready to be evicted: %d", rc);
    end(&f); // three were filling
    CHECK(lost(&f, LOSS_STOPPING) == 3, "three left");
}

static void test_drop_newest(void)
{
    struct fixture f;
    struct result *result;
    start(&f, 3, OVERFLOW_DROP_NEWEST);
    for (int i = 0; i < 3; i++)
        feed(&f);
    int rc = claim(&f, 1000, &result);
    CHECK(rc == -EAGAIN, "no room: %d", rc);
    for (uint64_t i = 0; i < 3; i++)
        deliver(&f, i);
    end(&f);
}

static void test_nobody(void)
{
    struct fixture f;
    struct result *result;
    start_items(&f, 3, 1, OVERFLOW_DROP_OLDEST);
    int rc = claim(&f, 1000, &result);
    CHECK(rc == -ENOTCONN, "there is no consumer: %d", rc);
    pool_set_sink(f.pool, POOL_SINK_REFUSED);
    rc = claim(&f, 1000, &result);
    CHECK(rc == -EPIPE, "there is no sink: %d", rc);
    pool_set_sink(f.pool, POOL_SINK_OPEN);
    pool_attach(f.pool, &f.consumer);
    result = claim_one(&f);
    feed(&f);
    pool_detach(f.pool, &f.consumer);
    CHECK(lost(&f, LOSS_CLIENT) == 0, "not in its turn");
    pool_complete(f.pool, result, 0, 1, 0);
    CHECK(lost(&f, LOSS_CLIENT) == 2, "the consumer left");
    end(&f);
}

// Results that are ready when the sink stops, or become ready after it, count as lost by stopping.
static void test_stop(void)
{
    struct fixture f;
    struct result *result;
    start(&f, 4, OVERFLOW_DROP_OLDEST);
    for (int i = 0; i < 3; i++)
        feed(&f);
    struct result *late = claim_one(&f);
    CHECK(pool_acquire(f.pool, &f.consumer) != NULL, "nothing is ready");
    pool_set_sink(f.pool, POOL_SINK_FINISHING);
    int rc = claim(&f, 1000, &result);
    CHECK(rc == -ESHUTDOWN && lost(&f, LOSS_STOPPING) == 0, "finishing: %d", rc);
    pool_set_sink(f.pool, POOL_SINK_STOPPED);
    CHECK(lost(&f, LOSS_STOPPING) == 2, "%d stopped", (int)lost(&f, LOSS_STOPPING));
    pool_release(f.pool, &f.consumer, true);
    CHECK(atomic_load(&f.ledger.emitted) == 1, "what was held is delivered");
    CHECK(!pool_acquire(f.pool, &f.consumer), "more after the stop");
    pool_complete(f.pool, late, 0, 1, 0);
    CHECK(lost(&f, LOSS_STOPPING) == 3, "%d stopped", (int)lost(&f, LOSS_STOPPING));
    end(&f);
}

static void *release_soon(void *opaque)
{
    struct fixture *f = opaque;
    usleep(20000);
    pool_attach(f->pool, &f->consumer);
    usleep(20000);
    deliver(f, 0);
    return NULL;
}

static void *stop_soon(void *opaque)
{
    struct fixture *f = opaque;
    usleep(20000);
    atomic_store(&f->stop, true);
    pool_wake(f->pool);
    return NULL;
}

static void test_wait(void)
{
    struct fixture f;
    struct result *result;
    pthread_t thread;
    start(&f, 3, OVERFLOW_WAIT);
    for (int i = 0; i < 3; i++)
        feed(&f);
    pool_detach(f.pool, &f.consumer); // leaves all to the next one
    pthread_create(&thread, NULL, release_soon, &f);
    feed(&f); // waits for the consumer, then for room
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, stop_soon, &f);
    int rc = claim(&f, 1000, &result);
    CHECK(rc == -ECANCELED, "stopped: %d", rc);
    pthread_join(thread, NULL);
    CHECK(ledger_lost(&f.ledger) == 1, "only the one that was stopped");
    for (uint64_t i = 1; i < 4; i++)
        deliver(&f, i);
    end(&f);
}

static void *finish_soon(void *opaque)
{
    struct fixture *f = opaque;
    usleep(50000);
    pool_set_sink(f->pool, POOL_SINK_FINISHING);
    return NULL;
}

static void *refuse_soon(void *opaque)
{
    struct fixture *f = opaque;
    usleep(50000);
    pool_set_sink(f->pool, POOL_SINK_REFUSED);
    return NULL;
}

// A camera waits for consumers, but not for a sink that cannot be opened.
static void test_no_sink_to_wait_for(void)
{
    struct fixture f;
    struct result *result;
    pthread_t thread;
    start_items(&f, 1, 1, OVERFLOW_WAIT);
    pool_set_sink(f.pool, POOL_SINK_REFUSED);
    int rc = claim(&f, 1000, &result);
    CHECK(rc == -EPIPE, "no sink: %d", rc);
    pool_set_sink(f.pool, POOL_SINK_OPEN);
    pthread_create(&thread, NULL, refuse_soon, &f);
    rc = claim(&f, 1000, &result);
    CHECK(rc == -EPIPE, "no sink any more: %d", rc);
    pthread_join(thread, NULL);
    end(&f);
}

// When an output is removed, waits for it end, and no new wait begins.
static void test_end_of_the_output(void)
{
    struct fixture f;
    struct result *result;
    pthread_t thread;
    start_items(&f, 1, 1, OVERFLOW_WAIT);
    pthread_create(&thread, NULL, finish_soon, &f);
    int rc = claim(&f, 1000, &result);
    CHECK(rc == -ESHUTDOWN, "waiting: %d", rc);
    pthread_join(thread, NULL);
    pool_attach(f.pool, &f.consumer);
    rc = claim(&f, 1000, &result);
    CHECK(rc == -ESHUTDOWN, "not waiting: %d", rc);
    end(&f);
}

static void test_max_age(void)
{
    struct fixture f;
    start(&f, 4, OVERFLOW_DROP_OLDEST);
    f.pool->options.max_age_ns = 1;
    pool_attach(f.pool, &f.other);
    feed(&f);
    feed(&f);
    CHECK(!pool_acquire(f.pool, &f.consumer) && ledger_lost(&f.ledger) == 0, "not for the other");
    CHECK(!pool_acquire(f.pool, &f.other) && lost(&f, LOSS_LATE) == 2, "not late");
    end(&f);
}

// A payload that several consumers detached counts once, when the first of them has received it or
// the last one gives up.
static void test_detached_payload(bool delivered)
{
    struct fixture f;
    start(&f, 2, OVERFLOW_DROP_OLDEST);
    pool_attach(f.pool, &f.other);
    feed(&f);
    CHECK(pool_acquire(f.pool, &f.consumer) && pool_acquire(f.pool, &f.other), "nothing is ready");
    CHECK(pool_is_short(f.pool), "one of two is held");
    pool_detach_payload(f.pool, &f.consumer);
    pool_detach_payload(f.pool, &f.other);
    CHECK(!pool_is_short(f.pool), "the slot is still held");
    for (uint64_t i = 1; i < 9; i++) {
        feed(&f);
        CHECK(pool_is_busy(f.pool, &f.consumer), "the delivery is not pending");
    }
    CHECK(ledger_in_flight(&f.ledger) == 3, "%d in flight", (int)ledger_in_flight(&f.ledger));
    if (delivered)
        pool_release(f.pool, &f.consumer, true);
    CHECK(!pool_is_busy(f.pool, &f.consumer) == delivered, "pending");
    pool_detach(f.pool, &f.consumer);
    CHECK(lost(&f, LOSS_CLIENT) == 0, "the other one has it too");
    pool_release(f.pool, &f.other, false);
    CHECK(atomic_load(&f.ledger.emitted) == delivered, "emitted");
    CHECK(lost(&f, LOSS_CLIENT) == !delivered, "lost");
    pool_detach(f.pool, &f.other);
    end(&f);
}

static void test_growth(void)
{
    struct fixture f;
    start(&f, 3, OVERFLOW_DROP_OLDEST);
    for (size_t size = 1; size <= 1 << 20; size *= 4) {
        struct result *result = NULL;
        CHECK(claim(&f, size, &result) == 0, "claim");
        memset(result->data, 1, size);
        CHECK(result->size == size && result->region->stride >= size, "size");
        pool_complete(f.pool, result, 0, 1, 0);
        deliver(&f, f.ordinal - 1);
    }
    end(&f);
}

// Uses the pool's only result once, for a frame of `size` bytes by the op `serial`, which succeeds
// or fails. Returns the op of the picture that was there before.
static uint64_t use(struct fixture *f, size_t size, uint64_t serial, int status)
{
    struct result *result = NULL;
    int rc = claim(f, size, &result);
    CHECK(rc == 0, "claim: %d", rc);
    if (rc < 0)
        return UINT64_MAX;
    uint64_t before = result->item[0].valid_op;
    result->item[0].valid_op = serial;
    pool_complete(f->pool, result, 0, 1, status);
    if (status == 0)
        deliver(f, f->ordinal - 1);
    return before;
}

static void test_valid_op(void)
{
    struct fixture f;
    start(&f, 1, OVERFLOW_DROP_OLDEST);
    CHECK(use(&f, 1000, 7, 0) == 0, "new memory holds nothing");
    CHECK(use(&f, 1000, 8, 0) == 7, "a whole picture stays");
    CHECK(use(&f, 500, 9, -EIO) == 8, "a smaller frame stays where it is");
    CHECK(use(&f, 1000, 10, 0) == 0, "a picture that failed is none");
    CHECK(use(&f, 5000, 11, 0) == 0, "the larger region is new memory");
    CHECK(use(&f, 1000, 12, 0) == 11, "and is kept");
    end(&f);
}

// --- results of several items

// Elements of one picture, which counts once.
static void test_items(void)
{
    enum { ITEMS = 3, SIZE = 100 };
    struct fixture f;
    struct result *result = NULL;
    start_items(&f, 2, ITEMS, OVERFLOW_DROP_OLDEST);
    pool_attach(f.pool, &f.consumer);
    CHECK(claim(&f, SIZE, &result) == 0 && result->n_items == ITEMS, "claim");
    CHECK(result->size == ITEMS * SIZE, "%zu bytes", result->size);
    memset(result->data, 1, result->size);
    pool_complete(f.pool, result, 2, 1, 0);
    pool_complete(f.pool, result, 0, 1, 0);
    CHECK(!pool_has_next(f.pool, &f.consumer), "ready without item 1");
    pool_complete(f.pool, result, 1, 1, -EIO);
    CHECK(pool_acquire(f.pool, &f.consumer) == result, "not ready");
    CHECK(result->item[1].status == -EIO && result->item[2].status == 0, "status");
    pool_release(f.pool, &f.consumer, true);
    CHECK(atomic_load(&f.ledger.emitted) == 1 && ledger_lost(&f.ledger) == 0, "not counted once");
    end(&f);
}

static void test_all_items_fail(void)
{
    enum { ITEMS = 3 };
    struct fixture f;
    struct result *result = NULL;
    start_items(&f, 2, ITEMS, OVERFLOW_DROP_OLDEST);
    pool_attach(f.pool, &f.consumer);
    CHECK(claim(&f, 100, &result) == 0, "claim");
    pool_complete(f.pool, result, 0, ITEMS, -EIO);
    CHECK(lost(&f, LOSS_BACKEND) == 1 && ledger_in_flight(&f.ledger) == 0, "not lost once");
    CHECK(!pool_acquire(f.pool, &f.consumer), "ready with nothing in it");
    end(&f);
}

enum { PRODUCED = 3000, PRODUCERS = 4 };

struct production {
    struct fixture f;
    struct result *_Atomic claimed[PRODUCED];
    _Atomic int next; // number of the next producer
};

// Completes one item of each result.
static void *produce(void *opaque)
{
    struct production *production = opaque;
    const int index = atomic_fetch_add(&production->next, 1);
    for (uint64_t i = 0; i < PRODUCED; i++) {
        struct result *result;
        while (!(result = atomic_load(&production->claimed[i])))
            usleep(10);
        const uint64_t number = i * PRODUCERS + (uint64_t)index;
        memcpy((char *)result->data + (size_t)index * sizeof number, &number, sizeof number);
        result->item[index].sequence = number;
        pool_complete(production->f.pool, result, index, 1, 0);
    }
    return NULL;
}

static void *claim_all(void *opaque)
{
    struct production *production = opaque;
    for (int i = 0; i < PRODUCED; i++) {
        struct result *result = NULL;
        CHECK(claim(&production->f, sizeof(uint64_t), &result) == 0, "claim %d", i);
        atomic_store(&production->claimed[i], result);
    }
    return NULL;
}

// Several threads fill the items of each result: it is ready when the last of them has finished.
static void test_producers(void)
{
    static struct production production;
    struct fixture *f = &production.f;
    pthread_t thread[PRODUCERS + 1];
    int n = 0, wrong = 0;
    start_items(f, 3, PRODUCERS, OVERFLOW_WAIT);
    pool_attach(f->pool, &f->consumer);
    pthread_create(&thread[PRODUCERS], NULL, claim_all, &production);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_create(&thread[i], NULL, produce, &production);
    for (int idle = 0; n < PRODUCED && idle < 100000;) {
        struct result *result = pool_acquire(f->pool, &f->consumer);
        if (!result) {
            idle++;
            usleep(100);
            continue;
        }
        for (uint64_t i = 0; i < PRODUCERS; i++)
            wrong += ((const uint64_t *)result->data)[i] != (uint64_t)n * PRODUCERS + i ||
                     result->item[i].sequence != (uint64_t)n * PRODUCERS + i;
        pool_release(f->pool, &f->consumer, true);
        n++;
    }
    CHECK(n == PRODUCED && wrong == 0, "%d results, %d wrong", n, wrong);
    for (int i = 0; i <= PRODUCERS && n == PRODUCED; i++)
        pthread_join(thread[i], NULL);
    CHECK(atomic_load(&f->ledger.emitted) == PRODUCED, "%d", (int)f->ledger.emitted);
    end(f);
}

// Frames that were counted wrong give wrong numbers, not a loop without end under the pool's lock.
static void test_counted_wrong(void)
{
    struct ledger twice = {.offered = 3, .emitted = 4}, absurd = {.offered = UINT64_C(1) << 60};
    struct fixture f;
    start(&f, 2, OVERFLOW_DROP_OLDEST);
    alarm(60);
    pool_forget_ledger(f.pool, &twice);
    pool_forget_ledger(f.pool, &absurd);
    alarm(0);
    CHECK(ledger_lost(&twice) == 0, "%d lost", (int)ledger_lost(&twice));
    CHECK(ledger_in_flight(&twice) == -1, "%d in flight", (int)ledger_in_flight(&twice));
    CHECK(ledger_in_flight(&absurd) == 0 && absurd.lost[LOSS_STOPPING] == absurd.offered, "rest");
    end(&f);
}

// After a failure no memory is asked for during a second: each try may take gigabytes for a while.
static void test_no_memory(void)
{
    struct fixture f;
    struct result *result = NULL;
    start(&f, 2, OVERFLOW_DROP_OLDEST);
    CHECK(claim(&f, (size_t)1 << 47, &result) == -ENOMEM, "256 TiB");
    const int64_t failed_ns = monotonic_ns();
    const int rc = claim(&f, 1000, &result);
    CHECK(rc == -ENOMEM || monotonic_ns() - failed_ns > 900000000, "tried again at once");
    if (rc == 0) // the machine was busy for a second
        pool_complete(f.pool, result, 0, 1, -EIO);
    usleep(1100000);
    feed(&f);
    deliver(&f, 2);
    end(&f);
}

int main(void)
{
    TEST(test_order());
    TEST(test_drop_oldest());
    TEST(test_drop_newest());
    TEST(test_nobody());
    TEST(test_stop());
    TEST(test_wait());
    TEST(test_no_sink_to_wait_for());
    TEST(test_end_of_the_output());
    TEST(test_max_age());
    TEST(test_detached_payload(true));
    TEST(test_detached_payload(false));
    TEST(test_growth());
    TEST(test_valid_op());
    TEST(test_items());
    TEST(test_all_items_fail());
    TEST(test_producers());
    TEST(test_counted_wrong());
    TEST(test_no_memory());
    return test_end();
}
