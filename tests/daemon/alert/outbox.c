// Events for several targets: order, limit and counts.
#include "daemon/alert/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "tests/test.h"

enum { BOTH = 1 << TARGET_WEBHOOK | 1 << TARGET_MQTT };

static const int64_t MS = 1000000;

static struct alert_event event_of(int number)
{
    struct alert_event event = {.kind = ALERT_DOWN, .raised_ms = number};
    strcpy(event.camera, "gate");
    return event;
}

static int first_of(struct outbox *outbox, enum alert_target target)
{
    const atomic_bool stop = false;
    struct alert_event event;
    const int64_t now = monotonic_ns();
    return outbox_wait(outbox, target, 0, now + 10 * MS, &stop, &event) == OUTBOX_EVENT
               ? (int)event.raised_ms
               : -1;
}

static void check_counts(struct outbox *outbox, enum alert_target target, uint64_t delivered,
                         uint64_t lost, int pending)
{
    int n;
    const struct outbox_counts counts = outbox_count(outbox, target, &n);
    CHECK(counts.delivered == delivered && counts.lost == lost && n == pending,
          "%d: %ju delivered, %ju lost, %d pending", (int)target, (uintmax_t)counts.delivered,
          (uintmax_t)counts.lost, n);
}

static void test_order(void)
{
    static struct outbox outbox;
    struct alert_event event;
    outbox_open(&outbox);
    CHECK(first_of(&outbox, TARGET_MQTT) == -1, "there is none");
    for (int i = 0; i < 3; i++) {
        event = event_of(i);
        outbox_put(&outbox, &event, BOTH);
    }
    outbox_put(&outbox, &event, 0);
    CHECK(first_of(&outbox, TARGET_COMMAND) == -1, "none is for the command");
    event = event_of(0);
    outbox_done(&outbox, TARGET_MQTT, &event, true);
    CHECK(first_of(&outbox, TARGET_MQTT) == 1 && first_of(&outbox, TARGET_WEBHOOK) == 0, "order");
    outbox_done(&outbox, TARGET_WEBHOOK, &event, false);
    check_counts(&outbox, TARGET_WEBHOOK, 0, 1, 2);
    check_counts(&outbox, TARGET_MQTT, 1, 0, 2);
    outbox_keep(&outbox, 1 << TARGET_MQTT);
    check_counts(&outbox, TARGET_WEBHOOK, 0, 3, 0);
    check_counts(&outbox, TARGET_MQTT, 1, 0, 2);
    outbox_close(&outbox);
}

static void test_bound(void)
{
    static struct outbox outbox;
    static struct outbox_entry copy[OUTBOX_MAX];
    uint64_t version;
    outbox_open(&outbox);
    for (int i = 0; i < OUTBOX_MAX + 7; i++) {
        const struct alert_event event = event_of(i);
        outbox_put(&outbox, &event, BOTH);
    }
    CHECK(first_of(&outbox, TARGET_MQTT) == 7, "the oldest are lost");
    check_counts(&outbox, TARGET_MQTT, 0, 7, OUTBOX_MAX);
    CHECK(outbox_copy(&outbox, copy, &version) == OUTBOX_MAX && version == OUTBOX_MAX + 7, "%ju",
          (uintmax_t)version);
    const struct alert_event gone = event_of(3); // dropped during its delivery
    outbox_done(&outbox, TARGET_MQTT, &gone, false);
    check_counts(&outbox, TARGET_MQTT, 0, 7, OUTBOX_MAX);
    outbox_close(&outbox);
}

static void *put_later(void *opaque)
{
    const struct timespec pause = {.tv_nsec = 20 * MS};
    const struct alert_event event = event_of(1);
    nanosleep(&pause, NULL);
    outbox_put(opaque, &event, BOTH);
    return NULL;
}

static void test_wait(void)
{
    static struct outbox outbox;
    atomic_bool stop = false;
    struct alert_event event;
    pthread_t thread;
    outbox_open(&outbox);
    pthread_create(&thread, NULL, put_later, &outbox);
    CHECK(outbox_wait(&outbox, TARGET_MQTT, 0, INT64_MAX, &stop, &event) == OUTBOX_EVENT, "wakes");
    pthread_join(thread, NULL);
    const int64_t later = monotonic_ns() + 30 * MS;
    CHECK(outbox_wait(&outbox, TARGET_MQTT, later, INT64_MAX, &stop, &event) == OUTBOX_EVENT &&
              monotonic_ns() >= later,
          "not before its time");
    CHECK(outbox_wait(&outbox, TARGET_MQTT, INT64_MAX, monotonic_ns() + MS, &stop, &event) ==
              OUTBOX_TIME,
          "its time is over");
    atomic_store(&stop, true);
    CHECK(outbox_wait(&outbox, TARGET_MQTT, 0, INT64_MAX, &stop, &event) == OUTBOX_STOP, "stops");
    outbox_close(&outbox);
}

static void test_signs(void)
{
    static struct outbox outbox;
    struct camera_sign *signs = calloc(2, sizeof *signs), *copy = NULL;
    uint64_t version = 0;
    outbox_open(&outbox);
    CHECK(outbox_signs(&outbox, &version, &copy) == -1, "none yet");
    signs[1].connected = true;
    outbox_show(&outbox, signs, 2);
    CHECK(outbox_signs(&outbox, &version, &copy) == 2 && copy[1].connected, "both");
    free(copy);
    CHECK(outbox_signs(&outbox, &version, &copy) == -1, "no news");
    outbox_close(&outbox);
}

int main(void)
{
    TEST(test_order());
    TEST(test_bound());
    TEST(test_wait());
    TEST(test_signs());
    return test_end();
}
