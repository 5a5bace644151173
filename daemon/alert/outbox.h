// The events that targets receive, and the outbox: the undelivered events, each with its targets,
// and the present state of the cameras. The outbox is bounded: drops and counts the oldest event
// when full. Any thread.
#ifndef FRAMED_DAEMON_ALERT_OUTBOX_H
#define FRAMED_DAEMON_ALERT_OUTBOX_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/alert/judge.h"

// --- an event: a camera's alert was raised or cleared

enum { ALERT_WHY_MAX = 160, ALERT_ID_MAX = 64, ALERT_TEXT_MAX = 320 };

// The highest time in milliseconds since 1970 that also fits in nanoseconds.
#define ALERT_MS_MAX (INT64_MAX / 2 / 1000000)

struct alert_event {
    char camera[24];
    enum alert_kind kind;
    bool raised;
    // Milliseconds since 1970: of this event, of the alert's begin, and of the trouble's begin.
    int64_t at_ms, raised_ms, since_ms;
    int interruptions;   // since the alert was raised
    double availability; // of seven days, 0 to 1; -1: unknown
    char why[ALERT_WHY_MAX];
};

// "gate-down-1763888778123": the same at an alert's begin and end.
void alert_event_id(const struct alert_event *, char to[ALERT_ID_MAX]);
// "camera gate is down: no media for 5 s"
void alert_event_text(const struct alert_event *, char to[ALERT_TEXT_MAX]);
// Returns all of it as JSON on one line, for free(); NULL: no memory. `host`: the machine's name.
char *alert_event_json(const struct alert_event *, const char *host);
// Parses such a line. Returns 0, -EINVAL or -ENOMEM.
int alert_event_parse(struct alert_event *ret, const char *json);

// --- the outbox

enum alert_target { TARGET_WEBHOOK, TARGET_COMMAND, TARGET_MQTT, TARGETS };
enum { OUTBOX_MAX = 256 };

struct outbox_entry {
    struct alert_event event;
    unsigned targets; // not delivered yet: bit 1 << enum alert_target
};

struct outbox_counts {
    uint64_t delivered, lost, failed; // events; failed: tries
};

// A camera's present state, for targets that show states instead of events.
struct camera_sign {
    char name[24];
    bool gone;     // it was removed
    bool analysed; // it has alarms
    bool connected, problem;
    unsigned alarms; // with a raised alert: bit 1 << enum alarm
};

struct outbox {
    pthread_mutex_t lock; // guards all fields below
    pthread_cond_t changed;
    struct outbox_entry entry[OUTBOX_MAX]; // oldest first
    int n;
    uint64_t version; // incremented by each change of the entries
    struct outbox_counts counts[TARGETS];
    struct camera_sign *signs; // n_signs cameras, sorted by name
    int n_signs;
    uint64_t signs_version; // incremented by each change of the signs
};

void outbox_open(struct outbox *);
void outbox_close(struct outbox *);

// `targets` 0: does nothing.
void outbox_put(struct outbox *, const struct alert_event *, unsigned targets);
// Removes all targets but these from the events, and counts their events as lost.
void outbox_keep(struct outbox *, unsigned targets);
// Takes ownership of `signs`, which are allocated and sorted by name.
void outbox_show(struct outbox *, struct camera_sign *signs, int n);
void outbox_wake(struct outbox *); // waiting threads check *stop again
int outbox_copy(struct outbox *, struct outbox_entry to[OUTBOX_MAX], uint64_t *version);
struct outbox_counts outbox_count(struct outbox *, enum alert_target, int *pending);

// --- for the delivery to a target
enum outbox_turn { OUTBOX_STOP, OUTBOX_EVENT, OUTBOX_TIME };
// Waits for an event for the target, returned at `from_ns` at the earliest and copied to *ret,
// until `until_ns` (CLOCK_MONOTONIC) or *stop.
enum outbox_turn outbox_wait(struct outbox *, enum alert_target, int64_t from_ns, int64_t until_ns,
                             const atomic_bool *stop, struct alert_event *ret);
void outbox_failed(struct outbox *, enum alert_target);
// Removes the target from the event: it was delivered, or is counted as lost.
void outbox_done(struct outbox *, enum alert_target, const struct alert_event *, bool delivered);
// Copies the signs, for free(), if *version is old. Returns their number; -1: unchanged, no memory.
int outbox_signs(struct outbox *, uint64_t *version, struct camera_sign **ret);

#endif
