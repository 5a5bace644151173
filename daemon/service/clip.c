#include "daemon/service/clip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/output/subscriptions.h"
#include "daemon/service/control.h"
#include "daemon/service/reply.h"

int clip_read(struct clip_wanted *clip, const char *text)
{
    int used;
    if (sscanf(text, " %31[A-Za-z0-9_-] %9lld%n", clip->camera, &clip->milliseconds, &used) != 2 ||
        clip->milliseconds < RECORD_MS_MIN || clip->milliseconds > RECORD_MS_MAX)
        return -1;
    return used;
}

static void add_name(char *names, size_t size, const char *name)
{
    const size_t used = strlen(names);
    snprintf(names + used, size - used, "%s%s", used ? ", " : "", name);
}

char *clip_record(const struct clip_wanted *clip, const struct metrics *metrics)
{
    char text[512], names[256] = "";
    const struct camera *camera = NULL;
    for (int i = 0; i < metrics->n_cameras; i++) {
        const struct camera *other = metrics->cameras[i];
        if (strcmp(other->config->name, clip->camera) == 0)
            camera = other;
        if (copies_take_requests(other->subscriptions))
            add_name(names, sizeof names, other->config->name);
    }
    const int n = camera ? copies_request(camera->subscriptions,
                                          monotonic_ns() + clip->milliseconds * 1000000)
                         : 0;
    if (n > 0) {
        snprintf(text, sizeof text, "%s: %d output%s write%s a clip that ends in %.10g s",
                 clip->camera, n, n == 1 ? "" : "s", n == 1 ? "s" : "",
                 (double)clip->milliseconds / 1000);
        log_event(LOG_LEVEL_INFO, "camera=%s a clip was asked for: %d output%s, %.10g s",
                  clip->camera, n, n == 1 ? "" : "s", (double)clip->milliseconds / 1000);
        return reply_done(text);
    }
    if (camera && copies_take_requests(camera->subscriptions))
        snprintf(text, sizeof text, "camera %s: its outputs with `before` cannot be written now",
                 clip->camera);
    else
        snprintf(text, sizeof text, "%s %s%s (%s%s)", camera ? "camera" : "there is no camera",
                 clip->camera, camera ? " has no output with kernel copy and `before`" : "",
                 *names ? "cameras that have one: " : "no camera has one", names);
    return reply_refusal(-ENOENT, text);
}
