// Watches the cameras and notifies the targets of `notify` about those in trouble; keeps the
// availability of each camera (camera/camera.h). A file keeps this state across a restart.
// Loop thread only; deliveries have their own threads (alert/delivery.h).
#ifndef FRAMED_DAEMON_ALERT_ALERTS_H
#define FRAMED_DAEMON_ALERT_ALERTS_H

#include "daemon/alert/outbox.h"
#include "daemon/base/loop.h"
#include "daemon/supervisor/cameras.h"

struct alerts;

struct alerts_context {
    uv_loop_t *loop;
    struct work_queue *work;
    const struct cameras *cameras;
    const struct config *config; // the keys of `notify` are copied
    const char *folder;          // for the file; NULL: no file, the state ends with the process
};

// Returns 0 or -ENOMEM.
int alerts_open(struct alerts **ret, const struct alerts_context *);
// For a reload: copies its changes and returns 0 or -ENOMEM. alerts_commit then applies the copy.
int alerts_prepare(struct alerts *, const struct config *);
void alerts_commit(struct alerts *);
// No work may be under way. Asks the threads to end; the loop's next iterations close the timer.
// Accepts NULL.
void alerts_stop(struct alerts *);
// After the loop's last iteration: waits for the threads, writes the file a last time, frees all.
void alerts_close(struct alerts *);

// For metrics.
bool alerts_has_target(const struct alerts *, enum alert_target);
const char *alert_target_name(enum alert_target);
struct outbox_counts alerts_count(struct alerts *, enum alert_target, int *pending);

#endif
