// The slot pool: order of publication, each overflow policy, pins, and a ledger whose sums always
// match.
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/pool_region.h"
#include "daemon/output/pool.h"
#include "tests/test.h"

struct fixture {
    struct ledger ledger;
    struct pool *pool;
    _Atomic bool stop;
    uint64_t ordinal;
};

static void start(struct fixture *f, int n, int listeners)
{
    struct pool_options options = {.n = n, .kind = REGION_PRIVATE, .ledger = &f->ledger};
    *f = (struct fixture){0};
    CHECK(pool_open(&f->pool, &options) == 0, "open");
    pool_listeners(f->pool, listeners);
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

static struct result *take(struct fixture *f, enum overflow overflow, int *rc)
{
    struct result *slot = NULL;
    ledger_offer(&f->ledger);
    *rc = pool_claim(f->pool, 1000, overflow, &f->stop, &slot);
    if (*rc == 0)
        slot->info.ordinal = f->ordinal;
    else
        ledger_lose(&f->ledger, LOSS_OVERFLOW);
    f->ordinal++;
    return slot;
}

static struct result *take_done(struct fixture *f, enum overflow overflow)
{
    int rc;
    struct result *slot = take(f, overflow, &rc);
    CHECK(rc == 0, "take: %d", rc);
    pool_complete(f->pool, slot, 0);
    pool_publish(f->pool);
    return slot;
}

static void deliver(struct fixture *f, uint64_t expected)
{
    struct result *slot = pool_next(f->pool, 0);
    CHECK(slot && slot->info.ordinal == expected, "expected frame %d", (int)expected);
    if (slot)
        pool_unpin(f->pool, slot, true);
    pool_retire(f->pool, expected + 1, LOSS_CLIENT);
}

static void test_order(void)
{
    struct fixture f;
    int rc;
    start(&f, 3, 1);
    struct result *first = take(&f, OVERFLOW_DROP_OLDEST, &rc);
    struct result *second = take(&f, OVERFLOW_DROP_OLDEST, &rc);
    struct result *third = take(&f, OVERFLOW_DROP_OLDEST, &rc);
    pool_complete(f.pool, third, 0);
    pool_complete(f.pool, second, -EIO);
    CHECK(pool_publish(f.pool) == 0, "the first is not done");
    CHECK(!pool_next(f.pool, 0), "nothing is ready");
    pool_complete(f.pool, first, 0);
    CHECK(pool_publish(f.pool) == 2, "first and third");
    CHECK(lost(&f, LOSS_BACKEND) == 1, "the second failed");
    CHECK(pool_head(f.pool) == 3, "head");
    deliver(&f, 0);
    deliver(&f, 2);
    CHECK(pool_idle(f.pool), "all free");
    CHECK(atomic_load(&f.ledger.emitted) == 2, "emitted");
    end(&f);
}

static void test_drop_oldest(void)
{
    struct fixture f;
    int rc;
    start(&f, 3, 1);
    for (int i = 0; i < 3; i++)
        take_done(&f, OVERFLOW_DROP_OLDEST);
    struct result *pinned = pool_next(f.pool, 0);
    CHECK(pool_pinned(f.pool) == 1, "one pinned");
    take_done(&f, OVERFLOW_DROP_OLDEST); // takes frame 1 away: frame 0 is being written
    CHECK(lost(&f, LOSS_OVERFLOW) == 1, "one pushed out");
    pool_unpin(f.pool, pinned, true);
    deliver(&f, 0);
    deliver(&f, 2);
    deliver(&f, 3);

    for (int i = 0; i < 3; i++)
        take(&f, OVERFLOW_DROP_OLDEST, &rc);
    take(&f, OVERFLOW_DROP_OLDEST, &rc);
    CHECK(rc == -EAGAIN, "nothing is ready to be pushed out: %d", rc);
    end(&f); // three were filling
    CHECK(lost(&f, LOSS_STOPPING) == 3, "three left");
}

static void test_drop_newest(void)
{
    struct fixture f;
    int rc;
    start(&f, 3, 1);
    for (int i = 0; i < 3; i++)
        take_done(&f, OVERFLOW_DROP_NEWEST);
    take(&f, OVERFLOW_DROP_NEWEST, &rc);
    CHECK(rc == -EAGAIN, "no room: %d", rc);
    for (uint64_t i = 0; i < 3; i++)
        deliver(&f, i);
    end(&f);
}

static void test_nobody(void)
{
    struct fixture f;
    int rc;
    start(&f, 3, 0);
    take(&f, OVERFLOW_DROP_OLDEST, &rc);
    CHECK(rc == -ENOTCONN, "nobody listens: %d", rc);
    pool_listeners(f.pool, POOL_NO_SINK);
    take(&f, OVERFLOW_DROP_OLDEST, &rc);
    CHECK(rc == -EPIPE, "there is no sink: %d", rc);
    pool_listeners(f.pool, 1);
    take_done(&f, OVERFLOW_DROP_OLDEST);
    pool_retire(f.pool, UINT64_MAX, LOSS_CLIENT);
    CHECK(lost(&f, LOSS_CLIENT) == 1, "the client left");
    end(&f);
}

static void *release_soon(void *opaque)
{
    struct fixture *f = opaque;
    usleep(20000);
    pool_listeners(f->pool, 1);
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
    pthread_t thread;
    int rc;
    start(&f, 3, 1);
    for (int i = 0; i < 3; i++)
        take_done(&f, OVERFLOW_WAIT);
    pool_listeners(f.pool, 0);
    pthread_create(&thread, NULL, release_soon, &f);
    take_done(&f, OVERFLOW_WAIT); // for the client, then for room
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, stop_soon, &f);
    take(&f, OVERFLOW_WAIT, &rc);
    CHECK(rc == -ECANCELED, "stopped: %d", rc);
    pthread_join(thread, NULL);
    CHECK(lost(&f, LOSS_OVERFLOW) == 1, "only the one that was stopped");
    for (uint64_t i = 1; i < 4; i++)
        deliver(&f, i);
    end(&f);
}

static void *end_soon(void *opaque)
{
    struct fixture *f = opaque;
    usleep(50000);
    pool_end(f->pool);
    return NULL;
}

static void *lose_sink_soon(void *opaque)
{
    struct fixture *f = opaque;
    usleep(50000);
    pool_listeners(f->pool, POOL_NO_SINK);
    return NULL;
}

// A camera waits for clients, and not for a sink that cannot be opened.
static void test_no_sink_to_wait_for(void)
{
    struct fixture f;
    pthread_t thread;
    int rc;
    start(&f, 1, POOL_NO_SINK);
    take(&f, OVERFLOW_WAIT, &rc);
    CHECK(rc == -EPIPE, "no sink: %d", rc);
    pool_listeners(f.pool, 0);
    pthread_create(&thread, NULL, lose_sink_soon, &f);
    take(&f, OVERFLOW_WAIT, &rc);
    CHECK(rc == -EPIPE, "no sink any more: %d", rc);
    pthread_join(thread, NULL);
    end(&f);
}

// Who waits for an output that is taken away waits no longer, nor does anybody else begin to.
static void test_end_of_the_output(void)
{
    struct fixture f;
    pthread_t thread;
    int rc;
    start(&f, 1, 0);
    pthread_create(&thread, NULL, end_soon, &f);
    take(&f, OVERFLOW_WAIT, &rc);
    CHECK(rc == -ESHUTDOWN, "waiting: %d", rc);
    pthread_join(thread, NULL);
    pool_listeners(f.pool, 1);
    take(&f, OVERFLOW_DROP_OLDEST, &rc);
    CHECK(rc == -ESHUTDOWN, "not waiting: %d", rc);
    end(&f);
}

static void test_growth(void)
{
    struct fixture f;
    start(&f, 3, 1);
    for (size_t size = 1; size <= 1 << 20; size *= 4) {
        struct result *slot = NULL;
        ledger_offer(&f.ledger);
        CHECK(pool_claim(f.pool, size, OVERFLOW_DROP_OLDEST, &f.stop, &slot) == 0, "take");
        memset(slot->data, 1, size);
        CHECK(slot->size == size && slot->region->stride >= size, "size");
        pool_complete(f.pool, slot, 0);
        pool_publish(f.pool);
        pool_retire(f.pool, UINT64_MAX, LOSS_CLIENT);
    }
    end(&f);
}

// One whole use of the pool's only slot, for a frame of `size` bytes that an op of that serial
// makes, or fails to. Returns what the slot held before.
static uint64_t use(struct fixture *f, size_t size, uint64_t serial, int status)
{
    struct result *slot = NULL;
    ledger_offer(&f->ledger);
    int rc = pool_claim(f->pool, size, OVERFLOW_DROP_OLDEST, &f->stop, &slot);
    CHECK(rc == 0, "take: %d", rc);
    if (rc < 0)
        return UINT64_MAX;
    uint64_t before = slot->holds;
    slot->holds = serial;
    pool_complete(f->pool, slot, status);
    pool_publish(f->pool);
    pool_retire(f->pool, UINT64_MAX, LOSS_CLIENT);
    return before;
}

static void test_holds(void)
{
    struct fixture f;
    start(&f, 1, 1);
    CHECK(use(&f, 1000, 7, 0) == 0, "new memory holds nothing");
    CHECK(use(&f, 1000, 8, 0) == 7, "a whole result stays");
    CHECK(use(&f, 500, 9, -EIO) == 8, "a smaller frame stays where it is");
    CHECK(use(&f, 1000, 10, 0) == 0, "a result that failed is none");
    CHECK(use(&f, 5000, 11, 0) == 0, "the larger region is new memory");
    CHECK(use(&f, 1000, 12, 0) == 11, "and is kept");
    end(&f);
}

int main(void)
{
    TEST(test_order());
    TEST(test_drop_oldest());
    TEST(test_drop_newest());
    TEST(test_nobody());
    TEST(test_wait());
    TEST(test_no_sink_to_wait_for());
    test_end_of_the_output();
    TEST(test_growth());
    TEST(test_holds());
    return test_end();
}
