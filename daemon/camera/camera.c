#include "daemon/camera/camera.h"

#include <errno.h>
#include <stddef.h>

#include "config/object.h"

static void close_released(struct subscriptions *released)
{
    if (released)
        subscriptions_close(released, NULL);
}

static void on_released(struct event *event)
{
    struct subscriptions *released =
        (struct subscriptions *)((char *)event - offsetof(struct subscriptions, released));
    const struct camera *camera = released->owner;
    subscriptions_close(released, NULL);
    camera->context.released(camera->context.opaque);
}

static void set_subscriptions(struct camera *camera, struct subscriptions *subscriptions)
{
    subscriptions->released.callback = on_released;
    subscriptions->owner = camera;
    camera->subscriptions = subscriptions;
}

static int open_thread(struct camera *camera)
{
    const struct camera_context *context = &camera->context;
    return camera_thread_open(&camera->thread, &(struct camera_thread_context){
                                                   .config = camera->config,
                                                   .devices = context->devices,
                                                   .logins = context->logins,
                                                   .events = context->events,
                                                   .previews = context->previews,
                                                   .subscriptions = camera->subscriptions,
                                                   .decode = context->decode,
                                                   .process = context->process,
                                                   .report = &camera->report,
                                                   .ended = &camera->ended,
                                               });
}

int camera_open(struct camera *camera, const struct camera_config *config,
                const struct camera_context *context)
{
    struct subscriptions *subscriptions;
    *camera = (struct camera){.config = config_copy_camera(config),
                              .context = *context,
                              .ended.callback = context->ended};
    if (!camera->config)
        return -ENOMEM;
    camera_report_open(&camera->report);
    if (camera->config->paused.line)
        atomic_store(&camera->report.state, CAMERA_PAUSED);
    camera->report.changes.posted.callback = context->changed;
    camera->report.changes.events = context->changed ? context->events : NULL;
    int rc =
        subscriptions_open(&subscriptions, camera->config->name, config, NULL, context->batches);
    if (rc == 0) {
        set_subscriptions(camera, subscriptions);
        rc = open_thread(camera);
    }
    if (rc < 0)
        camera_close(camera);
    return rc;
}

void camera_close(struct camera *camera)
{
    if (!camera->config)
        return;
    camera_thread_close(camera->thread);
    event_cancel(&camera->ended);
    if (camera->subscriptions)
        subscriptions_close(camera->subscriptions, output_close);
    camera_report_close(&camera->report);
    config_free_camera(camera->config);
    *camera = (struct camera){0};
}

void camera_continue(struct camera *camera, const struct camera *before)
{
    camera_thread_continue(camera->thread, before->thread);
}

int camera_start(struct camera *camera)
{
    int rc = camera_thread_start(camera->thread);
    camera->started = rc == 0;
    return rc;
}

// Releases camera->subscriptions first. A list that the thread has used is closed by its event,
// which comes after the events of its outputs.
void camera_subscribe(struct camera *camera, struct subscriptions *subscriptions)
{
    subscriptions_release(camera->subscriptions);
    set_subscriptions(camera, subscriptions);
    close_released(camera_thread_subscribe(camera->thread, subscriptions));
    if (!camera->started || camera->joined)
        close_released(camera_thread_update(camera->thread));
}

void camera_stop(struct camera *camera)
{
    camera_thread_stop(camera->thread);
}

void camera_join(struct camera *camera)
{
    camera_thread_join(camera->thread);
    camera->joined = true;
    close_released(camera_thread_update(camera->thread));
}

void camera_release_device(struct camera *camera)
{
    camera_thread_release_device(camera->thread);
}

struct preview_source *camera_preview(const struct camera *camera)
{
    return camera_thread_preview(camera->thread);
}

struct stream_memory camera_memory(const struct camera *camera)
{
    return camera_report_describe(&camera->report).memory;
}

struct camera *camera_of_event(struct event *event)
{
    return (struct camera *)((char *)event - offsetof(struct camera, ended));
}

struct camera *camera_of_changes(struct event *event)
{
    return (struct camera *)((char *)event - offsetof(struct camera, report.changes.posted));
}
