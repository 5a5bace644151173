// The slot pool as ring clients use it: who keeps what when frames need room, what the words say,
// and where the slots lie when frames grow and backends come and go.
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/pool_region.h"
#include "daemon/output/pool.h"
#include "tests/daemon/fake_driver.h"
#include "tests/test.h"

enum { SIZE = 1000, A = 0, B = 63 };

struct fixture {
    struct ledger ledger;
    struct pool *pool;
    _Atomic bool stop;
    uint64_t ordinal;
};

static void start(struct fixture *f, int n, enum region_kind kind)
{
    struct pool_options options = {.n = n, .name = "o", .kind = kind, .ledger = &f->ledger};
    *f = (struct fixture){0};
    CHECK(pool_open(&f->pool, &options) == 0, "open");
    pool_listeners(f->pool, 2);
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

static uint64_t word(const struct result *slot)
{
    return atomic_load(pool_region_word(slot->region, slot->number));
}

// A slot with the next frame, being filled; NULL: no room.
static struct result *take(struct fixture *f, size_t size, enum overflow overflow)
{
    struct result *slot = NULL;
    ledger_offer(&f->ledger);
    int rc = pool_claim(f->pool, size, overflow, &f->stop, &slot);
    if (rc == 0)
        slot->info.ordinal = f->ordinal;
    else
        ledger_lose(&f->ledger, LOSS_OVERFLOW);
    f->ordinal++;
    CHECK(rc == 0 || rc == -EAGAIN, "take: %d", rc);
    CHECK(rc < 0 || word(slot) == 0, "the word stands while the slot is filled");
    return slot;
}

// A frame that is ready.
static struct result *feed(struct fixture *f, enum overflow overflow)
{
    struct result *slot = take(f, SIZE, overflow);
    if (slot) {
        pool_complete(f->pool, slot, 0);
        CHECK(pool_publish(f->pool) == 1, "not published");
        CHECK(slot->ticket != 0 && word(slot) == slot->ticket, "the word is not the ticket");
    }
    return slot;
}

// The holder is told of the frame with that ordinal: its ticket.
static uint64_t hold(struct fixture *f, uint64_t ordinal, int holder)
{
    struct result *slot = pool_next(f->pool, ordinal);
    CHECK(slot && slot->info.ordinal == ordinal, "no frame %d", (int)ordinal);
    if (!slot)
        return 0;
    uint64_t ticket = slot->ticket;
    pool_hold(f->pool, slot, holder);
    return ticket;
}

static bool is_ready(struct fixture *f, uint64_t ordinal)
{
    struct result *slot = pool_next(f->pool, ordinal);
    if (!slot)
        return false;
    bool same = slot->info.ordinal == ordinal;
    pool_unpin(f->pool, slot, false);
    return same;
}

static void test_give_back(void)
{
    struct fixture f;
    start(&f, 3, REGION_SHARED);
    struct result *slot = feed(&f, OVERFLOW_DROP_OLDEST);
    uint64_t ticket = hold(&f, 0, A);
    hold(&f, 0, B);
    pool_retire(f.pool, 1, LOSS_CLIENT);
    CHECK(is_ready(&f, 0), "freed while two hold it");
    pool_give_back(f.pool, slot->number, ticket + 1, A);
    pool_give_back(f.pool, slot->number, ticket, 5);
    pool_give_back(f.pool, (slot->number + 1) % 3, ticket, A);
    CHECK(pool_holds(f.pool, A) && pool_holds(f.pool, B), "another's return counted");
    pool_give_back(f.pool, slot->number, ticket, A);
    pool_retire(f.pool, 1, LOSS_CLIENT);
    CHECK(!pool_holds(f.pool, A) && is_ready(&f, 0), "freed while B holds it");
    pool_let_go(f.pool, B);
    pool_retire(f.pool, 1, LOSS_CLIENT);
    CHECK(pool_idle(f.pool) && atomic_load(&f.ledger.emitted) == 1, "A had it");
    feed(&f, OVERFLOW_DROP_OLDEST);
    hold(&f, 1, B);
    pool_let_go(f.pool, B);
    pool_retire(f.pool, 2, LOSS_CLIENT);
    CHECK(lost(&f, LOSS_CLIENT) == 1, "nobody had it");
    end(&f);
}

// A is stuck with all; B gives back at once: B gets every frame, and A keeps its oldest.
static void test_stuck(void)
{
    struct fixture f;
    start(&f, 4, REGION_SHARED);
    for (uint64_t i = 0; i < 40; i++) {
        struct result *slot = feed(&f, OVERFLOW_DROP_OLDEST);
        CHECK(slot, "no room for frame %d", (int)i);
        hold(&f, i, A);
        pool_give_back(f.pool, slot->number, hold(&f, i, B), B);
        pool_retire(f.pool, i + 1, LOSS_CLIENT);
        CHECK(is_ready(&f, 0), "A's oldest is gone at %d", (int)i);
    }
    CHECK(ledger_lost(&f.ledger) == 0, "%d lost", (int)ledger_lost(&f.ledger));
    CHECK(atomic_load(&f.ledger.emitted) == 36, "%d", (int)atomic_load(&f.ledger.emitted));
    pool_let_go(f.pool, A);
    pool_retire(f.pool, UINT64_MAX, LOSS_CLIENT);
    CHECK(atomic_load(&f.ledger.emitted) == 40, "%d", (int)atomic_load(&f.ledger.emitted));
    end(&f);
}

// The oldest of each of two is theirs; what a hoarder has goes before what nobody has seen yet.
static void test_room(void)
{
    struct fixture f;
    start(&f, 4, REGION_SHARED);
    for (int i = 0; i < 4; i++)
        feed(&f, OVERFLOW_DROP_OLDEST);
    hold(&f, 0, A);
    hold(&f, 1, B);
    hold(&f, 2, A);
    CHECK(feed(&f, OVERFLOW_DROP_OLDEST) && !is_ready(&f, 2) && is_ready(&f, 3), "A's second");
    CHECK(feed(&f, OVERFLOW_DROP_OLDEST) && !is_ready(&f, 3) && is_ready(&f, 4), "then 3");
    CHECK(is_ready(&f, 0) && is_ready(&f, 1), "an oldest one is gone");
    CHECK(lost(&f, LOSS_OVERFLOW) == 2, "%d", (int)lost(&f, LOSS_OVERFLOW));
    hold(&f, 4, 7);
    struct result *pinned = pool_next(f.pool, 5);
    CHECK(!feed(&f, OVERFLOW_DROP_OLDEST), "taken from those who have no other");
    pool_unpin(f.pool, pinned, false);
    CHECK(feed(&f, OVERFLOW_DROP_OLDEST) && !is_ready(&f, 5), "the unpinned one");
    end(&f);
}

// The next frame goes to B, which gives it back, and to three that do not.
static bool pass(struct fixture *f, uint64_t ordinal)
{
    struct result *slot = feed(f, OVERFLOW_DROP_OLDEST);
    if (!slot)
        return false;
    for (int holder = 0; holder < 3; holder++)
        hold(f, ordinal, holder);
    pool_give_back(f->pool, slot->number, hold(f, ordinal, B), B);
    return true;
}

// As many stuck ones as slots, each with an oldest of its own, keep B from frames until these
// expire. From then on they are stuck with the same slot, and B misses nothing.
static void test_all_stuck(void)
{
    struct fixture f;
    int64_t held_ns[3];
    start(&f, 3, REGION_SHARED);
    for (int i = 0; i < 3; i++) {
        feed(&f, OVERFLOW_DROP_OLDEST);
        hold(&f, (uint64_t)i, i);
        usleep(1000);
        held_ns[i] = monotonic_ns();
    }
    CHECK(!pass(&f, 3), "taken from one that has no other");
    for (uint64_t i = 0; i < 2; i++) {
        pool_expire(f.pool, held_ns[i]);
        pool_retire(f.pool, i + 1, LOSS_LATE);
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
    start(&f, 3, REGION_SHARED);
    for (int i = 0; i < 3; i++)
        feed(&f, OVERFLOW_DROP_NEWEST);
    for (uint64_t i = 0; i < 3; i++)
        hold(&f, i, A);
    pool_passed(f.pool, 3);
    CHECK(!feed(&f, OVERFLOW_DROP_NEWEST), "taken from a holder");
    CHECK(pool_expire(f.pool, 1) > 0 && pool_holds(f.pool, A), "expired early");
    CHECK(pool_expire(f.pool, INT64_MAX) == 0 && !pool_holds(f.pool, A), "not expired");
    pool_retire(f.pool, 3, LOSS_LATE);
    CHECK(lost(&f, LOSS_LATE) == 3 && pool_idle(f.pool), "%d late", (int)lost(&f, LOSS_LATE));
    end(&f);
}

static void test_expire_some(void)
{
    struct fixture f;
    start(&f, 3, REGION_SHARED);
    for (int i = 0; i < 2; i++)
        feed(&f, OVERFLOW_DROP_OLDEST);
    hold(&f, 0, A);
    usleep(2000);
    int64_t between = monotonic_ns();
    usleep(2000);
    hold(&f, 1, A);
    int64_t first = pool_expire(f.pool, between);
    CHECK(first > between && first <= monotonic_ns(), "when the next one is due");
    pool_retire(f.pool, 2, LOSS_LATE);
    CHECK(!is_ready(&f, 0) && is_ready(&f, 1) && lost(&f, LOSS_LATE) == 1, "not only the first");
    end(&f);
}

static void *give_back_soon(void *opaque)
{
    struct fixture *f = opaque;
    usleep(20000);
    for (int i = 0; i < 3; i++)
        pool_give_back(f->pool, i, (uint64_t)i + 1, A);
    pool_retire(f->pool, 3, LOSS_CLIENT);
    return NULL;
}

static void test_wait(void)
{
    struct fixture f;
    pthread_t thread;
    start(&f, 3, REGION_SHARED);
    for (int i = 0; i < 3; i++)
        feed(&f, OVERFLOW_WAIT);
    for (uint64_t i = 0; i < 3; i++)
        CHECK(hold(&f, i, A) == i + 1, "ticket");
    pthread_create(&thread, NULL, give_back_soon, &f);
    CHECK(feed(&f, OVERFLOW_WAIT), "no room");
    pthread_join(thread, NULL);
    CHECK(atomic_load(&f.ledger.emitted) == 3 && ledger_lost(&f.ledger) == 0, "lost one");
    end(&f);
}

// --- memory

// A larger frame: the slots move, what is held stays as and where it was.
static void test_move(enum region_kind kind)
{
    struct fixture f;
    start(&f, 3, kind);
    struct result *old = feed(&f, OVERFLOW_DROP_OLDEST);
    memset(old->data, 7, SIZE);
    uint64_t ticket = hold(&f, 0, A);
    const uint8_t *data = old->data;
    struct pool_region *region = old->region;
    struct result *large = take(&f, 100 * SIZE, OVERFLOW_DROP_OLDEST);
    CHECK(large->region != region && large->region->generation == region->generation + 1, "new");
    memset(large->data, 8, 100 * SIZE);
    pool_complete(f.pool, large, 0);
    pool_publish(f.pool);
    CHECK(data[0] == 7 && data[SIZE - 1] == 7 && word(old) == ticket, "the old one changed");
    pool_give_back(f.pool, old->number, ticket, A);
    pool_retire(f.pool, 1, LOSS_CLIENT);
    struct result *small = feed(&f, OVERFLOW_DROP_OLDEST); // closes the old region
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
    struct result *slot[N];
    int wrong = 0;
    start(&f, N, REGION_SHARED);
    for (int i = 0; i < N; i++) {
        slot[i] = take(&f, SIZE, OVERFLOW_DROP_OLDEST);
        memset(slot[i]->data, i, SIZE);
        pool_complete(f.pool, slot[i], 0);
    }
    CHECK(pool_publish(f.pool) == N, "published");
    for (int i = 0; i < N; i++) {
        const uint8_t *data = slot[i]->data;
        wrong += (uintptr_t)data % 256 != 0 || data[0] != i || data[SIZE - 1] != i ||
                 word(slot[i]) != slot[i]->ticket;
    }
    CHECK(wrong == 0, "%d slots overlap", wrong);
    end(&f);
}

static const struct backend_driver plain = {.pin = fake_pin, .unpin = fake_unpin};

static void test_pinning(void)
{
    struct fixture f;
    start(&f, 3, REGION_SHARED);
    pool_set_backend(f.pool, &fake_driver, NULL);
    CHECK(feed(&f, OVERFLOW_DROP_OLDEST)->memory == MEMORY_PINNED && pinned == 1, "not pinned");
    pool_clear_backend(f.pool);
    CHECK(pinned == 0 && is_ready(&f, 0), "left pinned, or the frame is gone");
    pool_set_backend(f.pool, &plain, NULL);
    CHECK(pinned == 1, "not pinned again");
    CHECK(feed(&f, OVERFLOW_DROP_OLDEST)->memory == MEMORY_PINNED, "memory");
    CHECK(exports == 0, "on the device");
    pool_clear_backend(f.pool);
    CHECK(feed(&f, OVERFLOW_DROP_OLDEST)->memory == MEMORY_HOST && pinned == 0, "pinned by nobody");
    end(&f);
}

// On the device, away from it, and there again; each time frames are held.
static void test_device(void)
{
    struct fixture f;
    start(&f, 4, REGION_DEVICE);
    pool_set_backend(f.pool, &fake_driver, NULL);
    struct result *slot = feed(&f, OVERFLOW_DROP_OLDEST);
    CHECK(slot->memory == MEMORY_CUDA && slot->region->device.base == device_memory, "not there");
    CHECK((uint8_t *)slot->data - device_memory == slot->number * (ptrdiff_t)slot->region->stride,
          "data");
    hold(&f, 0, A);
    struct result *unseen = take(&f, SIZE, OVERFLOW_DROP_OLDEST);
    pool_complete(f.pool, unseen, 0);
    pool_clear_backend(f.pool);
    CHECK(exports == 0 && !is_ready(&f, 0) && !pool_holds(f.pool, A), "not taken back");
    CHECK(lost(&f, LOSS_BACKEND) == 1, "%d", (int)lost(&f, LOSS_BACKEND));

    pool_set_backend(f.pool, &plain, NULL);
    slot = take(&f, SIZE, OVERFLOW_DROP_OLDEST);
    pool_complete(f.pool, slot, 0);
    CHECK(pool_publish(f.pool) == 1 && lost(&f, LOSS_BACKEND) == 2, "the unseen one is ready");
    CHECK(slot->memory == MEMORY_PINNED && !pool_region_on_device(slot->region), "on a device");
    hold(&f, 2, A);
    pool_clear_backend(f.pool);
    pool_set_backend(f.pool, &fake_driver, NULL);
    slot = feed(&f, OVERFLOW_DROP_OLDEST);
    CHECK(slot->memory == MEMORY_CUDA && slot->region->generation == 3, "not back");
    CHECK(is_ready(&f, 2) && pool_holds(f.pool, A), "the frame on the host is gone");
    pool_let_go(f.pool, A);
    pool_clear_backend(f.pool);
    CHECK(pinned == 0 && exports == 0, "%d pinned, %d exports", pinned, exports);
    end(&f);
}

static void test_device_full(void)
{
    struct fixture f;
    start(&f, 3, REGION_DEVICE);
    device_is_full = true;
    pool_set_backend(f.pool, &fake_driver, NULL);
    uint32_t generation = 0;
    for (int i = 0; i < 3; i++) {
        struct result *slot = feed(&f, OVERFLOW_DROP_OLDEST);
        CHECK(slot->memory == MEMORY_PINNED, "not on the host");
        CHECK(i == 0 || slot->region->generation == generation, "a region for every frame");
        generation = slot->region->generation;
    }
    device_is_full = false;
    pool_clear_backend(f.pool);
    end(&f);
}

static void *unpin_soon(void *opaque)
{
    struct fixture *f = opaque;
    struct result *slot = pool_next(f->pool, 0);
    usleep(20000);
    CHECK(exports == 1, "gone while the loop reads it");
    pool_hold(f->pool, slot, A);
    return NULL;
}

static void test_leave_waits(void)
{
    struct fixture f;
    pthread_t thread;
    start(&f, 3, REGION_DEVICE);
    pool_set_backend(f.pool, &fake_driver, NULL);
    feed(&f, OVERFLOW_DROP_OLDEST);
    pthread_create(&thread, NULL, unpin_soon, &f);
    while (pool_pinned(f.pool) == 0)
        usleep(100);
    pool_clear_backend(f.pool);
    pthread_join(thread, NULL);
    CHECK(lost(&f, LOSS_BACKEND) == 1 && exports == 0, "not taken back");
    end(&f);
}

int main(void)
{
    TEST(test_give_back());
    TEST(test_stuck());
    TEST(test_room());
    TEST(test_all_stuck());
    TEST(test_drop_newest());
    TEST(test_expire_some());
    TEST(test_wait());
    TEST(test_move(REGION_PRIVATE));
    TEST(test_move(REGION_SHARED));
    TEST(test_layout());
    TEST(test_pinning());
    TEST(test_device());
    TEST(test_device_full());
    TEST(test_leave_waits());
    return test_end();
}
