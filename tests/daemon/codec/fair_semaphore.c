// The semaphore admits as many visitors as it may, in the order of their arrival.
#include "daemon/codec/nvdec.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/test.h"

enum { THREADS = 12, ROOM = 3, ROUNDS = 2000 };

struct visitor {
    pthread_t id;
    struct fair_semaphore *semaphore;
    int *order, *arrived; // protected by the semaphore, if it admits one
    int number;
};

// Each waits in line behind the one before; the holder lets them in.
static void *visit_once(void *opaque)
{
    struct visitor *visitor = opaque;
    fair_semaphore_enter(visitor->semaphore);
    visitor->order[(*visitor->arrived)++] = visitor->number;
    fair_semaphore_leave(visitor->semaphore, 1);
    return NULL;
}

static struct fair_semaphore_waiter **end_of_line(struct fair_semaphore *semaphore)
{
    pthread_mutex_lock(&semaphore->mutex);
    struct fair_semaphore_waiter **last = semaphore->last;
    pthread_mutex_unlock(&semaphore->mutex);
    return last;
}

static void test_order(void)
{
    struct fair_semaphore semaphore;
    struct visitor visitor[THREADS];
    int order[THREADS], arrived = 0;
    fair_semaphore_init(&semaphore, 1);
    fair_semaphore_enter(&semaphore);
    for (int i = 0; i < THREADS; i++) {
        struct fair_semaphore_waiter **last = end_of_line(&semaphore);
        visitor[i] = (struct visitor){
            .semaphore = &semaphore, .order = order, .arrived = &arrived, .number = i};
        pthread_create(&visitor[i].id, NULL, visit_once, &visitor[i]);
        while (end_of_line(&semaphore) == last)
            sched_yield();
    }
    CHECK(arrived == 0, "%d are in too early", arrived);
    fair_semaphore_leave(&semaphore, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(visitor[i].id, NULL);
    CHECK(arrived == THREADS, "%d", arrived);
    for (int i = 0; i < arrived; i++)
        CHECK(order[i] == i, "number %d was let in as number %d", order[i], i);
    CHECK(semaphore.room == 1 && !semaphore.first, "room %d", semaphore.room);
    fair_semaphore_finish(&semaphore);
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
        fair_semaphore_leave(&crowded, 1);
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

// Places taken at once keep others out until they are left; then a waiting visitor gets in.
static void test_press(void)
{
    struct fair_semaphore semaphore;
    struct visitor visitor;
    int order[1], arrived = 0;
    fair_semaphore_init(&semaphore, ROOM);
    fair_semaphore_enter(&semaphore);
    fair_semaphore_take(&semaphore, ROOM);
    CHECK(semaphore.room == -1, "room %d", semaphore.room);
    struct fair_semaphore_waiter **last = end_of_line(&semaphore);
    visitor = (struct visitor){.semaphore = &semaphore, .order = order, .arrived = &arrived};
    pthread_create(&visitor.id, NULL, visit_once, &visitor);
    while (end_of_line(&semaphore) == last)
        sched_yield();
    fair_semaphore_leave(&semaphore, 1);
    pthread_mutex_lock(&semaphore.mutex);
    CHECK(semaphore.room == 0 && semaphore.first, "room %d", semaphore.room);
    pthread_mutex_unlock(&semaphore.mutex);
    fair_semaphore_leave(&semaphore, ROOM);
    pthread_join(visitor.id, NULL);
    CHECK(arrived == 1 && semaphore.room == ROOM && !semaphore.first, "room %d", semaphore.room);
    fair_semaphore_finish(&semaphore);
}

// Half of its places used for a while, all of them, none: the used time adds up.
static void test_used(void)
{
    enum { MS = 1000000 };
    struct fair_semaphore semaphore;
    fair_semaphore_init(&semaphore, 2);
    fair_semaphore_enter(&semaphore);
    int64_t before = monotonic_ns();
    usleep(40000);
    fair_semaphore_enter(&semaphore);
    int64_t between = monotonic_ns();
    usleep(40000);
    fair_semaphore_leave(&semaphore, 1);
    fair_semaphore_leave(&semaphore, 1);
    int64_t expected = between - before + 2 * (monotonic_ns() - between);
    usleep(40000);
    int64_t used = (int64_t)fair_semaphore_used_ns(&semaphore);
    CHECK(used > 110 * MS && used < expected + 10 * MS && used > expected - 10 * MS,
          "%lld ms and not %lld", (long long)used / MS, (long long)expected / MS);
    CHECK(fair_semaphore_used_ns(&semaphore) == (uint64_t)used,
          "it goes on while nobody is inside");
    fair_semaphore_finish(&semaphore);
}

int main(void)
{
    TEST(test_used());
    TEST(test_order());
    TEST(test_press());
    TEST(test_bound());
    return test_end();
}
