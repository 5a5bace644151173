// The gate lets in as many as it may, in the order in which they came.
#include "daemon/base/fair_semaphore.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/test.h"

enum { THREADS = 12, ROOM = 3, ROUNDS = 2000 };

struct visitor {
    pthread_t id;
    struct fair_semaphore *gate;
    int *order, *arrived; // under the gate, where one at a time is inside
    int number;
};

// Each waits in line behind the one before; the one inside lets them in.
static void *visit_once(void *opaque)
{
    struct visitor *visitor = opaque;
    fair_semaphore_enter(visitor->gate);
    visitor->order[(*visitor->arrived)++] = visitor->number;
    fair_semaphore_leave(visitor->gate);
    return NULL;
}

static struct fair_semaphore_waiter **end_of_line(struct fair_semaphore *gate)
{
    pthread_mutex_lock(&gate->mutex);
    struct fair_semaphore_waiter **last = gate->last;
    pthread_mutex_unlock(&gate->mutex);
    return last;
}

static void test_order(void)
{
    struct fair_semaphore gate;
    struct visitor visitor[THREADS];
    int order[THREADS], arrived = 0;
    fair_semaphore_init(&gate, 1);
    fair_semaphore_enter(&gate);
    for (int i = 0; i < THREADS; i++) {
        struct fair_semaphore_waiter **last = end_of_line(&gate);
        visitor[i] =
            (struct visitor){.gate = &gate, .order = order, .arrived = &arrived, .number = i};
        pthread_create(&visitor[i].id, NULL, visit_once, &visitor[i]);
        while (end_of_line(&gate) == last)
            sched_yield();
    }
    CHECK(arrived == 0, "%d are in too early", arrived);
    fair_semaphore_leave(&gate);
    for (int i = 0; i < THREADS; i++)
        pthread_join(visitor[i].id, NULL);
    CHECK(arrived == THREADS, "%d", arrived);
    for (int i = 0; i < arrived; i++)
        CHECK(order[i] == i, "number %d was let in as number %d", order[i], i);
    CHECK(gate.room == 1 && !gate.first, "room %d", gate.room);
    fair_semaphore_finish(&gate);
}

static struct fair_semaphore crowded;
static _Atomic int inside, most, visits;

static void *visit_often(void *opaque)
{
    (void)opaque;
    for (int i = 0; i < ROUNDS; i++) {
        fair_semaphore_enter(&crowded);
        int now = atomic_fetch_add(&inside, 1) + 1, before = atomic_load(&most);
        while (now > before && !atomic_compare_exchange_weak(&most, &before, now))
            ;
        if (i % 16 == 0)
            sched_yield();
        atomic_fetch_sub(&inside, 1);
        fair_semaphore_leave(&crowded);
        atomic_fetch_add(&visits, 1);
    }
    return NULL;
}

static void test_bound(void)
{
    pthread_t threads[THREADS];
    fair_semaphore_init(&crowded, ROOM);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, visit_often, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(most <= ROOM && visits == THREADS * ROUNDS, "%d at once", most);
    CHECK(crowded.room == ROOM && !crowded.first, "room %d", crowded.room);
    fair_semaphore_finish(&crowded);
}

// Places that are taken at once keep others out for as long, and whoever waits gets in after it.
static void test_press(void)
{
    struct fair_semaphore gate;
    struct visitor visitor;
    int order[1], arrived = 0;
    fair_semaphore_init(&gate, ROOM);
    fair_semaphore_enter(&gate);
    fair_semaphore_press(&gate, ROOM);
    CHECK(gate.room == -1, "room %d", gate.room);
    struct fair_semaphore_waiter **last = end_of_line(&gate);
    visitor = (struct visitor){.gate = &gate, .order = order, .arrived = &arrived};
    pthread_create(&visitor.id, NULL, visit_once, &visitor);
    while (end_of_line(&gate) == last)
        sched_yield();
    fair_semaphore_leave(&gate);
    pthread_mutex_lock(&gate.mutex);
    CHECK(gate.room == 0 && gate.first, "room %d", gate.room);
    pthread_mutex_unlock(&gate.mutex);
    fair_semaphore_retreat(&gate, ROOM);
    pthread_join(visitor.id, NULL);
    CHECK(arrived == 1 && gate.room == ROOM && !gate.first, "room %d", gate.room);
    fair_semaphore_finish(&gate);
}

// Half of its places for a while, all of them, none: what was used adds up.
static void test_used(void)
{
    enum { MS = 1000000 };
    struct fair_semaphore gate;
    fair_semaphore_init(&gate, 2);
    fair_semaphore_enter(&gate);
    int64_t before = monotonic_ns();
    usleep(40000);
    fair_semaphore_enter(&gate);
    int64_t between = monotonic_ns();
    usleep(40000);
    fair_semaphore_leave(&gate);
    fair_semaphore_leave(&gate);
    int64_t expected = between - before + 2 * (monotonic_ns() - between);
    usleep(40000);
    int64_t used = (int64_t)fair_semaphore_used_ns(&gate);
    CHECK(used > 110 * MS && used < expected + 10 * MS && used > expected - 10 * MS,
          "%lld ms and not %lld", (long long)used / MS, (long long)expected / MS);
    CHECK(fair_semaphore_used_ns(&gate) == (uint64_t)used, "it goes on while nobody is inside");
    fair_semaphore_finish(&gate);
}

int main(void)
{
    TEST(test_used());
    TEST(test_order());
    TEST(test_press());
    TEST(test_bound());
    return test_end("gate");
}
