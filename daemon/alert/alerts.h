// Watches the cameras, and tells who wants to know of those in trouble, by the keys of `notify`;
// keeps the availability of each camera (camera/availability.h). What it knows outlives a restart
// in a file. Loop thread only; the threads that deliver are its own (alert/delivery.h).
#ifndef FRAMED_DAEMON_ALERT_ALERTS_H
#define FRAMED_DAEMON_ALERT_ALERTS_H

#include "daemon/alert/outbox.h"
#include "daemon/base/work.h"
#include "daemon/supervisor/cameras.h"

struct alerts;

struct alerts_context {
    uv_loop_t *loop;
    struct work_queue *work;
    const struct cameras *cameras;
    const struct config *config; // of which the keys of `notify` are copied
    const char *folder;          // for the file; NULL: nowhere, all ends with the process
};

// 0 or -ENOMEM.
int alerts_open(struct alerts **ret, const struct alerts_context *);
// Of a reload: copies what it changes; 0 or -ENOMEM. alerts_commit then takes the copy over.
int alerts_prepare(struct alerts *, const struct config *);
void alerts_commit(struct alerts *);
// With no work under way. Asks the threads to end, and closes the timer with the loop's next turns.
// Accepts NULL.
void alerts_stop(struct alerts *);
// After the loop's last turn: waits for the threads, writes the file a last time, and frees all.
void alerts_close(struct alerts *);

// What metrics show.
bool alerts_has_target(const struct alerts *, enum alert_target);
const char *alert_target_name(enum alert_target);
struct outbox_counts alerts_count(struct alerts *, enum alert_target, int *pending);

#endif
