// The event that targets receive: a camera's alert was raised or cleared. Any thread.
#ifndef FRAMED_DAEMON_ALERT_ALERT_EVENT_H
#define FRAMED_DAEMON_ALERT_ALERT_EVENT_H

#include "daemon/alert/judge.h"

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

#endif
