// The pool as ring clients use it: the results that each keeps when room is needed, the state
// words, and the place of data when results grow and backends come and go.
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/output/pool.h"
#include "tests/daemon/fake_driver.h"
#include "tests/test.h"

enum { SIZE = 1000, CONSUMERS = 4, A = 0, B = 1, C = 2, D = 3 };

struct fixture {
    struct ledger ledger;
    struct pool *pool;
    struct consumer consumer[CONSUMERS];
    _Atomic bool stop;
    uint64_t ordinal;
};

// Starts with so many consumers.
static void start(struct fixture *f, int n, enum region_kind kind, enum overflow overflow,
                  int consumers)
{
    struct pool_options options = {.n = n,
                                   .items = 1,
                                   .name = "o",
                                   .kind = kind,
                                   .overflow = overflow,
                                   .undelivered = LOSS_CLIENT};
    *f = (struct fixture){0};
    CHECK(pool_open(&f->pool, &options) == 0, "open");
    for (int i = 0; i < consumers; i++)
        pool_attach(f->pool, &f->consumer[i]);
}

static void end(struct fixture *f)
{
    pool_close(f->pool);
    CHECK(ledger_in_flight(&f->ledger) == 0, "%d in flight", (int)ledger_in_flight(&f->ledger));
}

static uint64_t lost(struct fixture *f, enum loss reason)
{
    return atomic_load(&f->ledger.lost[reason]);
}

static uint64_t word(const struct result *result)
{
    return atomic_load(pool_region_word(result->region, result->number));
}

// Claims a result for the next frame, to be filled; returns NULL without room.
static struct result *claim(struct fixture *f, size_t size)
{
    struct result *result = NULL;
    struct pool_request request = {
        .size = size, .items = 1, .ledger = &f->ledger, .stop = &f->stop};
    ledger_offer(&f->ledger);
    int rc = pool_claim(f->pool, &request, &result);
    if (rc == 0)
        result->item[0].ordinal = f->ordinal;
    else
        ledger_lose(&f->ledger, LOSS_OVERFLOW);
    f->ordinal++;
    CHECK(rc == 0 || rc == -EAGAIN, "claim: %d", rc);
    CHECK(rc < 0 || word(result) == 0, "the word stands while the result is filled");
    return result;
}

// Makes a result ready.
static struct result *feed(struct fixture *f)
{
    struct result *result = claim(f, SIZE);
    if (result) {
        pool_complete(f->pool, result, 0, 1, 0);
        CHECK(result->ticket != 0 && word(result) == result->ticket, "the word is not the ticket");
    }
    return result;
}

// Lends the frame with that ordinal to the consumer; returns its ticket. Older ones go back unread.
static uint64_t lend(struct fixture *f, uint64_t ordinal, int consumer)
{
    struct result *result;
    while ((result = pool_acquire(f->pool, &f->consumer[consumer])) &&
           result->item[0].ordinal < ordinal)
        pool_release(f->pool, &f->consumer[consumer], false);
    CHECK(result && result->item[0].ordinal == ordinal, "no frame %d", (int)ordinal);
    if (!result)
        return 0;
    uint64_t ticket = result->ticket;
    pool_lend(f->pool, &f->consumer[consumer], true);
    return ticket;
}

static void give_back(struct fixture *f, int number, uint64_t ticket, int consumer)
{
    CHECK(pool_return(f->pool, &f->consumer[consumer], (uint32_t)number, ticket) >= 0,
          "no such slot");
}

static bool is_ready(struct fixture *f, uint64_t ordinal)
{
    for (int i = 0; i < f->pool->options.n; i++)
        if (f->pool->result[i].state == RESULT_READY &&
            f->pool->result[i].item[0].ordinal == ordinal)
            return true;
    return false;
}

static bool is_busy(struct fixture *f, int consumer)
{
    return pool_is_busy(f->pool, &f->consumer[consumer]);
}

static void test_return(void)
{
    struct fixture f;
    start(&f, 3, REGION_SHARED, OVERFLOW_DROP_OLDEST, 3);
    struct result *result = feed(&f);
    uint64_t ticket = lend(&f, 0, A);
    lend(&f, 0, B);
    lend(&f, 0, C);
    CHECK(is_ready(&f, 0), "freed while three read it");
    pool_detach(f.pool, &f.consumer[C]);
    give_back(&f, result->number, ticket + 1, A);
    give_back(&f, (result->number + 1) % 3, ticket, A);
    CHECK(pool_return(f.pool, &f.consumer[A], 3, ticket) == -EINVAL, "a fourth slot");
    CHECK(is_busy(&f, A) && is_busy(&f, B), "another's return counted");
    give_back(&f, result->number, ticket, A);
    CHECK(!is_busy(&f, A) && is_ready(&f, 0), "freed while B reads it");
    pool_detach(f.pool, &f.consumer[B]);
    CHECK(!is_ready(&f, 0) && atomic_load(&f.ledger.emitted) == 1, "A had it");
    feed(&f);
    lend(&f, 1, A);
    pool_detach(f.pool, &f.consumer[A]);
    CHECK(lost(&f, LOSS_CLIENT) == 1, "nobody had it");
    end(&f);
}

// A consumer that could not be told gets the same result again.
static void test_not_told(void)
{
    struct fixture f;
    start(&f, 3, REGION_SHARED, OVERFLOW_DROP_OLDEST, 1);
    feed(&f);
    feed(&f);
    for (int i = 0; i < 3; i++) {
        struct result *result = pool_acquire(f.pool, &f.consumer[A]);
        CHECK(result && result->item[0].ordinal == 0, "another one at try %d", i);
        pool_lend(f.pool, &f.consumer[A], i == 2);
    }
    lend(&f, 1, A);
    CHECK(is_ready(&f, 0) && is_ready(&f, 1) && ledger_lost(&f.ledger) == 0, "one is lost");
    end(&f);
}

static void expect_report(struct fixture *f, int consumer, struct consumer_report expected)
{
    const struct consumer_report got = pool_report(f->pool, &f->consumer[consumer]);
    CHECK(got.behind == expected.behind && got.held == expected.held &&
              got.taken == expected.taken && got.missed == expected.missed,
          "%c is %d behind, holds %d, took %d, missed %d", 'A' + consumer, got.behind, got.held,
          (int)got.taken, (int)got.missed);
}

// A keeps the first of three slots, and B takes all; the fourth frame replaces the second, before C
// comes.
static void test_report(void)
{
    struct fixture f;
    start(&f, 3, REGION_SHARED, OVERFLOW_DROP_OLDEST, 3);
    for (uint64_t i = 0; i < 4; i++) {
        struct result *result = feed(&f);
        if (i == 0)
            lend(&f, 0, A);
        if (i != 1)
            give_back(&f, result->number, lend(&f, i, B), B);
    }
    expect_report(&f, A, (struct consumer_report){.behind = 2, .held = 1, .taken = 1});
    expect_report(&f, B, (struct consumer_report){.taken = 4});
    expect_report(&f, C, (struct consumer_report){.behind = 3});
    lend(&f, 3, C);
    expect_report(&f, C, (struct consumer_report){.held = 1, .taken = 3, .missed = 1});
    end(&f);
}

// A is stuck with all; B returns at once: B gets every frame, and A keeps its oldest.
static void test_stuck(void)
{
    struct fixture f;
    start(&f, 4, REGION_SHARED, OVERFLOW_DROP_OLDEST, 2);
    for (uint64_t i = 0; i < 40; i++) {
        struct result *result = feed(&f);
        CHECK(result, "no room for frame %d", (int)i);
        lend(&f, i, A);
        give_back(&f, result->number, lend(&f, i, B), B);
        CHECK(is_ready(&f, 0), "A's oldest is gone at %d", (int)i);
    }
    CHECK(ledger_lost(&f.ledger) == 0, "%d lost", (int)ledger_lost(&f.ledger));
    CHECK(atomic_load(&f.ledger.emitted) == 36, "%d", (int)atomic_load(&f.ledger.emitted));
    pool_detach(f.pool, &f.consumer[A]);
    CHECK(atomic_load(&f.ledger.emitted) == 40, "%d", (int)atomic_load(&f.ledger.emitted));
    end(&f);
}

// Two consumers keep their oldest each; a hoarder's others are taken before unseen ones.
static void test_room(void)
{
    struct fixture f;
    start(&f, 4, REGION_SHARED, OVERFLOW_DROP_OLDEST, 4);
    for (int i = 0; i < 4; i++)
        feed(&f);
    lend(&f, 0, A);
    lend(&f, 1, B);
    lend(&f, 2, A);
    CHECK(feed(&f) && !is_ready(&f, 2) && is_ready(&f, 3), "A's second");
    CHECK(feed(&f) && !is_ready(&f, 3) && is_ready(&f, 4), "then 3");
    CHECK(is_ready(&f, 0) && is_ready(&f, 1), "an oldest one is gone");
    CHECK(lost(&f, LOSS_OVERFLOW) == 2, "%d", (int)lost(&f, LOSS_OVERFLOW));
    lend(&f, 4, C);
    while (pool_acquire(f.pool, &f.consumer[D])->item[0].ordinal < 5)
        pool_release(f.pool, &f.consumer[D], false);
    CHECK(!feed(&f), "taken from those who have no other");
    pool_release(f.pool, &f.consumer[D], false);
    CHECK(feed(&f) && !is_ready(&f, 5), "the released one");
    end(&f);
}

// Passes the next frame to D, which returns it, and to three that do not.
static bool pass(struct fixture *f, uint64_t ordinal)
{
    struct result *result = feed(f);
    if (!result)
        return false;
    for (int consumer = 0; consumer < 3; consumer++)
        lend(f, ordinal, consumer);
    give_back(f, result->number, lend(f, ordinal, D), D);
    return true;
}

// As many stuck consumers as results, each with an oldest of its own, keep frames from D until
// these expire. From then on they are stuck with the same result, and D misses nothing.
static void test_all_stuck(void)
{
    struct fixture f;
    int64_t lent_ns[3];
    start(&f, 3, REGION_SHARED, OVERFLOW_DROP_OLDEST, 4);
    for (int i = 0; i < 3; i++) {
        feed(&f);
        lend(&f, (uint64_t)i, i);
        usleep(1000);
        lent_ns[i] = monotonic_ns();
    }
    for (int consumer = 0; consumer < CONSUMERS; consumer++) // the others have released them
        while (pool_acquire(f.pool, &f.consumer[consumer]))
            pool_release(f.pool, &f.consumer[consumer], false);
    CHECK(!pass(&f, 3), "taken from one that has no other");
    for (uint64_t i = 0; i < 2; i++) {
        pool_revoke(f.pool, lent_ns[i]);
        CHECK(pass(&f, 4 + 2 * i), "no room after %d expired", (int)i + 1);
        CHECK(i == 1 || !pass(&f, 5), "two have an oldest of their own");
    }
    for (uint64_t i = 7; i < 20; i++)
        CHECK(pass(&f, i), "frame %d", (int)i);
    end(&f);
}

static void test_drop_newest(void)
{
    struct fixture f;
    start(&f, 3, REGION_SHARED, OVERFLOW_DROP_NEWEST, 1);
    for (int i = 0; i < 3; i++)
        feed(&f);
    for (uint64_t i = 0; i < 3; i++)
        lend(&f, i, A);
    CHECK(!feed(&f), "taken from a consumer");
    CHECK(pool_revoke(f.pool, 1) > 0 && is_busy(&f, A), "revoked early");
    CHECK(pool_revoke(f.pool, INT64_MAX) == 0 && !is_busy(&f, A), "not revoked");
    CHECK(lost(&f, LOSS_LATE) == 3 && !is_ready(&f, 2), "%d late", (int)lost(&f, LOSS_LATE));
    end(&f);
}

static void test_revoke_some(void)
{
    struct fixture f;
    start(&f, 3, REGION_SHARED, OVERFLOW_DROP_OLDEST, 1);
    for (int i = 0; i < 2; i++)
        feed(&f);
    lend(&f, 0, A);
    usleep(2000);
    int64_t between = monotonic_ns();
    usleep(2000);
    lend(&f, 1, A);
    int64_t first = pool_revoke(f.pool, between);
    CHECK(first > between && first <= monotonic_ns(), "when the next one is due");
    CHECK(!is_ready(&f, 0) && is_ready(&f, 1) && lost(&f, LOSS_LATE) == 1, "not only the first");
    end(&f);
}

static void *give_back_soon(void *opaque)
{
    struct fixture *f = opaque;
    usleep(20000);
    for (int i = 0; i < 3; i++)
        pool_return(f->pool, &f->consumer[A], (uint32_t)i, (uint64_t)i + 1);
    return NULL;
}

static void test_wait(void)
{
    struct fixture f;
    pthread_t thread;
    start(&f, 3, REGION_SHARED, OVERFLOW_WAIT, 1);
    for (int i = 0; i < 3; i++)
        feed(&f);
    for (uint64_t i = 0; i < 3; i++)
        CHECK(lend(&f, i, A) == i + 1, "ticket");
    pthread_create(&thread, NULL, give_back_soon, &f);
    CHECK(feed(&f), "no room");
    pthread_join(thread, NULL);
    CHECK(atomic_load(&f.ledger.emitted) == 3 && ledger_lost(&f.ledger) == 0, "lost one");
    end(&f);
}

// --- memory

// A larger frame: the slots move; held results keep their place and contents.
static void test_move(enum region_kind kind)
{
    struct fixture f;
    start(&f, 3, kind, OVERFLOW_DROP_OLDEST, 1);
    struct result *old = feed(&f);
    memset(old->data, 7, SIZE);
    uint64_t ticket = lend(&f, 0, A);
    const uint8_t *data = old->data;
    struct pool_region *region = old->region;
    struct result *large = claim(&f, 100 * SIZE);
    CHECK(large->region != region && large->region->generation == region->generation + 1, "new");
    memset(large->data, 8, 100 * SIZE);
    pool_complete(f.pool, large, 0, 1, 0);
    CHECK(data[0] == 7 && data[SIZE - 1] == 7 && word(old) == ticket, "the old one changed");
    give_back(&f, old->number, ticket, A);
    struct result *small = feed(&f); // closes the old region
    CHECK(small->region == large->region, "back again");
    CHECK((uint8_t *)small->data + small->size <=
              small->region->host.base + small->region->host.bytes,
          "beyond the region");
    end(&f);
}

static void test_layout(void)
{
    enum { N = 256 };
    struct fixture f;
    struct result *result[N];
    int wrong = 0;
    start(&f, N, REGION_SHARED, OVERFLOW_DROP_OLDEST, 1);
    for (int i = 0; i < N; i++) {
        result[i] = claim(&f, SIZE);
        memset(result[i]->data, i, SIZE);
        pool_complete(f.pool, result[i], 0, 1, 0);
    }
    for (int i = 0; i < N; i++) {
        const uint8_t *data = result[i]->data;
        wrong += (uintptr_t)data % 256 != 0 || data[0] != i || data[SIZE - 1] != i ||
                 word(result[i]) != result[i]->ticket;
    }
    CHECK(wrong == 0, "%d results overlap", wrong);
    end(&f);
}

static const struct backend_driver plain = {.pin = fake_pin, .unpin = fake_unpin};

static void test_pinning(void)
{
    struct fixture f;
    start(&f, 3, REGION_SHARED, OVERFLOW_DROP_OLDEST, 1);
    pool_add_backend(f.pool, &fake_driver, NULL);
    CHECK(feed(&f)->memory == MEMORY_PINNED && pinned == 1, "not pinned");
    pool_remove_backend(f.pool, NULL);
    CHECK(pinned == 0 && is_ready(&f, 0), "left pinned, or the frame is gone");
    pool_add_backend(f.pool, &plain, NULL);
    CHECK(pinned == 1, "not pinned again");
    CHECK(feed(&f)->memory == MEMORY_PINNED, "memory");
    CHECK(exports == 0, "on the device");
    pool_remove_backend(f.pool, NULL);
    CHECK(feed(&f)->memory == MEMORY_HOST && pinned == 0, "pinned by nobody");
    end(&f);
}

// To the device, away from it, and back; frames are held each time.
static void test_device(void)
{
    struct fixture f;
    start(&f, 4, REGION_DEVICE, OVERFLOW_DROP_OLDEST, 1);
    pool_add_backend(f.pool, &fake_driver, NULL);
    struct result *result = feed(&f);
    CHECK(result->memory == MEMORY_CUDA && result->region->device.base == device_memory,
          "not there");
    CHECK((uint8_t *)result->data - device_memory ==
              result->number * (ptrdiff_t)result->region->stride,
          "data");
    lend(&f, 0, A);
    struct result *unseen = claim(&f, SIZE);
    pool_complete(f.pool, unseen, 0, 1, 0);
    pool_remove_backend(f.pool, NULL);
    CHECK(exports == 0 && !is_ready(&f, 0) && !is_busy(&f, A), "not taken back");
    CHECK(lost(&f, LOSS_BACKEND) == 2, "%d", (int)lost(&f, LOSS_BACKEND)); // the unseen one too

    pool_add_backend(f.pool, &plain, NULL);
    result = claim(&f, SIZE);
    pool_complete(f.pool, result, 0, 1, 0);
    CHECK(word(result) == result->ticket, "not ready");
    CHECK(result->memory == MEMORY_PINNED && !pool_region_on_device(result->region), "on a device");
    lend(&f, 2, A);
    pool_remove_backend(f.pool, NULL);
    pool_add_backend(f.pool, &fake_driver, NULL);
    result = feed(&f);
    CHECK(result->memory == MEMORY_CUDA && result->region->generation == 3, "not back");
    CHECK(is_ready(&f, 2) && is_busy(&f, A), "the frame on the host is gone");
    pool_detach(f.pool, &f.consumer[A]);
    pool_remove_backend(f.pool, NULL);
    CHECK(pinned == 0 && exports == 0, "%d pinned, %d exports", pinned, exports);
    end(&f);
}

static void test_device_full(void)
{
    struct fixture f;
    start(&f, 3, REGION_DEVICE, OVERFLOW_DROP_OLDEST, 1);
    device_is_full = true;
    pool_add_backend(f.pool, &fake_driver, NULL);
    uint32_t generation = 0;
    for (int i = 0; i < 3; i++) {
        struct result *result = feed(&f);
        CHECK(result->memory == MEMORY_PINNED, "not on the host");
        CHECK(i == 0 || result->region->generation == generation, "a region for every frame");
        generation = result->region->generation;
    }
    device_is_full = false;
    pool_remove_backend(f.pool, NULL);
    end(&f);
}

static void *lend_soon(void *opaque)
{
    struct fixture *f = opaque;
    CHECK(pool_acquire(f->pool, &f->consumer[A]), "nothing is ready");
    atomic_store(&f->stop, true); // signals that it holds the frame
    usleep(20000);
    CHECK(exports == 1, "gone while the loop reads it");
    pool_lend(f->pool, &f->consumer[A], true);
    return NULL;
}

static void test_clear_waits(void)
{
    struct fixture f;
    pthread_t thread;
    start(&f, 3, REGION_DEVICE, OVERFLOW_DROP_OLDEST, 1);
    pool_add_backend(f.pool, &fake_driver, NULL);
    feed(&f);
    pthread_create(&thread, NULL, lend_soon, &f);
    while (!atomic_load(&f.stop))
        usleep(100);
    pool_remove_backend(f.pool, NULL);
    pthread_join(thread, NULL);
    CHECK(lost(&f, LOSS_BACKEND) == 1 && exports == 0, "not taken back");
    end(&f);
}

int main(void)
{
    TEST(test_return());
    TEST(test_not_told());
    TEST(test_report());
    TEST(test_stuck());
    TEST(test_room());
    TEST(test_all_stuck());
    TEST(test_drop_newest());
    TEST(test_revoke_some());
    TEST(test_wait());
    TEST(test_move(REGION_PRIVATE));
    TEST(test_move(REGION_SHARED));
    TEST(test_layout());
    TEST(test_pinning());
    TEST(test_device());
    TEST(test_device_full());
    TEST(test_clear_waits());
    return test_end();
}
