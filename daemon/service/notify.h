// What the service manager is told of the daemon, by sd_notify(3): that it is ready, reloads and
// stops, how many cameras run, and again and again that it is well, as long as it is. Where no
// service manager wants to know, nothing happens. Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_NOTIFY_H
#define FRAMED_DAEMON_SERVICE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct health {
    int cameras, started, running; // of those that are not paused
    const char *stuck;             // a camera, and what it is at; NULL: none
    const char *step;
};

// Without a watchdog's time: as framed.service has it.
static const int64_t HEALTH_PATIENCE_NS = 30 * INT64_C(1000000000);

// Fills in *ret. A camera is stuck that is `patience_ns` behind its own deadlines.
typedef void health_fn(void *opaque, int64_t patience_ns, struct health *ret);

struct notify {
    uv_timer_t timer;
    health_fn *look;
    void *opaque;
    uint64_t watchdog_us; // that the manager waits for a sign of life; 0: for ever
    int running, cameras; // as told last
    bool ready;           // told, since the start or the last reload
    bool silent;          // a camera is stuck: no sign of life
};

// From the loop's first turn on: looks, and tells that the daemon is ready once every camera has
// been started, after a reload again.
void notify_open(struct notify *, uv_loop_t *, health_fn *look, void *opaque);
// The patience that the watchdog has, or would have.
int64_t notify_patience_ns(const struct notify *);
void notify_reloading(void);
void notify_reloaded(struct notify *); // or not: what runs, runs
void notify_stopping(struct notify *);
void notify_close(struct notify *); // its timer; the loop has to run once more

#endif
