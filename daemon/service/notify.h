// Notifies the service manager by sd_notify(3): when the daemon is ready, reloads and stops, how
// many cameras run, and periodically while the daemon is well. Does nothing without a service
// manager. Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_NOTIFY_H
#define FRAMED_DAEMON_SERVICE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct health {
    int cameras, started, running; // without paused ones
    const char *stuck;             // a camera, and its present step; NULL: none
    const char *step;
};

// Without a watchdog: the value of framed.service.
static const int64_t HEALTH_PATIENCE_NS = 30 * INT64_C(1000000000);

// Fills in *ret. A camera is stuck if it is `patience_ns` behind its own deadlines.
typedef void health_fn(void *opaque, int64_t patience_ns, struct health *ret);

struct notify {
    uv_timer_t timer;
    health_fn *look;
    void *opaque;
    uint64_t watchdog_us; // the manager's wait for a sign of life; 0: forever
    int running, cameras; // last reported
    bool ready;           // reported, since the start or the last reload
    bool silent;          // a camera is stuck: no sign of life
};

// Checks from the loop's first iteration on, and reports that the daemon is ready once every camera
// has been started; after a reload again.
void notify_open(struct notify *, uv_loop_t *, health_fn *look, void *opaque);
// Returns the patience that the watchdog has, or would have.
int64_t notify_patience_ns(const struct notify *);
void notify_reloading(void);
void notify_reloaded(struct notify *); // also if the reload was refused
void notify_stopping(struct notify *);
void notify_close(struct notify *); // its timer; the loop has to run once more

#endif
