// What somebody is told: that an alert of a camera was raised, or that it was cleared. Any thread.
#ifndef FRAMED_DAEMON_ALERT_ALERT_EVENT_H
#define FRAMED_DAEMON_ALERT_ALERT_EVENT_H

#include "daemon/alert/judge.h"

enum { ALERT_WHY_MAX = 160, ALERT_ID_MAX = 64, ALERT_TEXT_MAX = 320 };

// Times in milliseconds since 1970 that can be ns, too.
#define ALERT_MS_MAX (INT64_MAX / 2 / 1000000)

struct alert_event {
    char camera[24];
    enum alert_kind kind;
    bool raised;
    // Milliseconds since 1970: of the event, of its alert's begin, and since when it is so.
    int64_t at_ms, raised_ms, since_ms;
    int interruptions;   // since it was raised
    double availability; // of seven days, 0 to 1; -1: not known
    char why[ALERT_WHY_MAX];
};

// "gate-down-1763888778123": the same for an alert's begin and end.
void alert_event_id(const struct alert_event *, char to[ALERT_ID_MAX]);
// "camera gate is down: no media for 5 s"
void alert_event_text(const struct alert_event *, char to[ALERT_TEXT_MAX]);
// All of it as JSON on one line, to be freed; NULL: no memory. `host`: the machine's name.
char *alert_event_json(const struct alert_event *, const char *host);
// Reads such a line. 0; -EINVAL; -ENOMEM.
int alert_event_parse(struct alert_event *ret, const char *json);

#endif
