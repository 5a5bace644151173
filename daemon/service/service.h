// Operates the daemon while it runs: the control socket, HTTP, and the samples that both report.
// Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_SERVICE_H
#define FRAMED_DAEMON_SERVICE_SERVICE_H

#include <uv.h>

#include "daemon/service/metrics.h"

struct service;

struct service_context {
    uv_loop_t *loop;
    const struct config *config; // must be valid during the call only
    struct work_queue *work;
    struct reload *reload;
    // Returns the present state of the daemon.
    void (*snapshot)(void *opaque, struct metrics *ret);
    void *opaque;
};

// Listens as configured, and logs it. Returns 0, or a negative errno with the reason logged if a
// configured address is unavailable. If the default path of the control socket is unavailable, only
// logs that.
int service_open(struct service **ret, const struct service_context *);
// For a reload: listens as newly configured, beside the present sockets. Returns 0; -EINVAL: an
// address is unavailable, with a line for each reason in `errors`; -ENOMEM.
int service_prepare(struct service *, const struct config *, const char *file, FILE *errors);
// One of these must follow: replaces the present sockets by the prepared ones, or drops these.
// Clients of the control socket get their replies even if it moves.
void service_commit(struct service *);
void service_abandon(struct service *);
// Log events: the changes waiting in the camera's report; the end of a reload; the change of a
// camera, which was put, removed, paused or resumed. Accept NULL.
void service_camera_changed(struct service *, struct camera *);
void service_reloaded(struct service *);
void service_edited(struct service *, const struct edit *);
// Returns how many more cameras like the running ones this machine can take, from measurements of
// the last seconds; -1: unknown.
int service_more_cameras(const struct service *);
// No work may be under way. The loop's next iterations close its handles. Accepts NULL.
void service_close(struct service *);

#endif
