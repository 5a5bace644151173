// Events that are still to be delivered, each to some targets, and what cameras are like now.
// Bounded: where there is no room, the oldest event is lost, and counted. Any thread.
#ifndef FRAMED_DAEMON_ALERT_OUTBOX_H
#define FRAMED_DAEMON_ALERT_OUTBOX_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/alert/alert_event.h"

enum alert_target { TARGET_WEBHOOK, TARGET_COMMAND, TARGET_MQTT, TARGETS };
enum { OUTBOX_MAX = 256 };

struct outbox_entry {
    struct alert_event event;
    unsigned targets; // that it has to be delivered to: bit 1 << enum alert_target
};

struct outbox_counts {
    uint64_t delivered, lost, failed; // events; failed: tries
};

// What a camera is like now, for who shows states and no events.
struct camera_sign {
    char name[24];
    bool gone;     // it was removed
    bool analysed; // alarms are known of it
    bool connected, problem;
    unsigned alarms; // of which alerts are raised
};

struct outbox {
    pthread_mutex_t lock; // of all that follows
    pthread_cond_t changed;
    struct outbox_entry entry[OUTBOX_MAX]; // the oldest first
    int n;
    uint64_t version; // rises with each change of the entries
    struct outbox_counts counts[TARGETS];
    struct camera_sign *signs; // of n_signs cameras, sorted by name
    int n_signs;
    uint64_t signs_version; // rises with each change of these
};

int outbox_open(struct outbox *); // 0 or negative errno
void outbox_close(struct outbox *);

// `targets` 0: nobody is told.
void outbox_put(struct outbox *, const struct alert_event *, unsigned targets);
// Targets beside these are not told any more.
void outbox_keep(struct outbox *, unsigned targets);
// Takes over `signs`, which were allocated and are sorted by name.
void outbox_show(struct outbox *, struct camera_sign *signs, int n);
void outbox_wake(struct outbox *); // who waits looks at *stop again
int outbox_copy(struct outbox *, struct outbox_entry to[OUTBOX_MAX], uint64_t *version);
struct outbox_counts outbox_count(struct outbox *, enum alert_target, int *pending);

// --- who delivers to a target
enum outbox_turn { OUTBOX_STOP, OUTBOX_EVENT, OUTBOX_TIME };
// Waits until `until_ns` (CLOCK_MONOTONIC), or from `from_ns` on until there is an event for the
// target, which *ret is then a copy of, or until *stop.
enum outbox_turn outbox_wait(struct outbox *, enum alert_target, int64_t from_ns, int64_t until_ns,
                             const atomic_bool *stop, struct alert_event *ret);
void outbox_failed(struct outbox *, enum alert_target);
// The event was delivered to the target, or never will be.
void outbox_done(struct outbox *, enum alert_target, const struct alert_event *, bool delivered);
// A copy of the signs, to be freed, if they have changed since *version. -1: not, or no memory.
int outbox_signs(struct outbox *, uint64_t *version, struct camera_sign **ret);

#endif
