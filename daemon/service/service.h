// What operates the daemon while it runs: the control socket, HTTP, and the samples that both
// report. Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_SERVICE_H
#define FRAMED_DAEMON_SERVICE_SERVICE_H

#include <uv.h>

#include "daemon/service/metrics.h"

struct service;

struct service_context {
    uv_loop_t *loop;
    const struct config *config; // outlives the call alone
    struct work_queue *work;
    struct reload *reload;
    // What the daemon does now.
    void (*snapshot)(void *opaque, struct metrics *ret);
    void *opaque;
};

// Listens where the configuration says and logs it. 0, or negative errno with the reason logged: a
// place that the configuration names cannot be had. That the default place of the control socket
// cannot is logged alone.
int service_open(struct service **ret, const struct service_context *);
// Of a reload: listens where the new configuration says, beside what listens. 0; -EINVAL: a place
// cannot be had, and each reason is a line in `errors`, where `file` stands for the configuration;
// -ENOMEM.
int service_prepare(struct service *, const struct config *, const char *file, FILE *errors);
// Then one of both: what was prepared takes the place of what listened, or goes without a trace.
// Clients of the control socket get their replies wherever it moves.
void service_commit(struct service *);
void service_abandon(struct service *);
// Changes wait in the camera's report, a reload has ended, a camera was put, removed, paused or
// resumed: events of all. Accept NULL.
void service_camera_changed(struct service *, struct camera *);
void service_reloaded(struct service *);
void service_edited(struct service *, const struct edit *);
// How many more cameras like those that run this machine can take, by what was measured in the last
// seconds; -1: not known.
int service_more_cameras(const struct service *);
// With no work under way. Its handles close with the loop's next turns. Accepts NULL.
void service_close(struct service *);

#endif
