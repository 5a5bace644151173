#include "daemon/camera/camera.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "config/object.h"
#include "daemon/base/clock.h"

// --- availability

static const int64_t MS = 1000000, HOUR_NS = 3600 * INT64_C(1000000000);
static const int64_t HOUR_MS = 3600000;

// Makes `hour` the newest bucket; clears skipped ones.
static void advance_to_hour(struct availability *a, int64_t hour)
{
    if (hour - a->hour >= AVAILABILITY_HOURS)
        memset(a->hours, 0, sizeof a->hours);
    else
        for (int64_t h = a->hour + 1; h <= hour; h++)
            a->hours[h % AVAILABILITY_HOURS] = (struct availability_hour){0};
    a->hour = hour;
}

void availability_add(struct availability *a, int64_t realtime_ns, int64_t passed_ns, bool up)
{
    const int64_t hour = (realtime_ns - passed_ns) / HOUR_NS;
    if (realtime_ns < passed_ns || passed_ns <= 0 || passed_ns > HOUR_NS)
        return;
    // A machine without a battery starts in 1970 and gets the time later. If the clock stays
    // behind, the time of the buckets was wrong.
    if (hour <= a->hour - AVAILABILITY_HOURS) {
        if ((a->behind_ns += passed_ns) < HOUR_NS)
            return;
        *a = (struct availability){.hour = hour};
    }
    a->behind_ns = 0;
    if (hour > a->hour)
        advance_to_hour(a, hour);
    struct availability_hour *bucket = &a->hours[hour % AVAILABILITY_HOURS];
    const int64_t room = HOUR_MS - bucket->known_ms, ms = (passed_ns + MS / 2) / MS;
    const uint32_t add = (uint32_t)(ms < room ? ms : room);
    bucket->known_ms += add;
    bucket->up_ms += up ? add : 0;
}

const struct availability_hour *availability_hour(const struct availability *a, int64_t hour)
{
    const bool there = hour >= 0 && hour <= a->hour && hour > a->hour - AVAILABILITY_HOURS;
    return there ? &a->hours[hour % AVAILABILITY_HOURS] : NULL;
}

void availability_set(struct availability *a, int64_t hour, struct availability_hour bucket)
{
    if (hour < a->hour || hour > INT64_MAX / HOUR_NS || bucket.known_ms > HOUR_MS ||
        bucket.up_ms > bucket.known_ms)
        return;
    advance_to_hour(a, hour);
    a->hours[hour % AVAILABILITY_HOURS] = bucket;
}

static double share_of(int64_t up_ms, int64_t known_ms)
{
    return known_ms > 0 ? (double)up_ms / (double)known_ms : -1;
}

void availability_sum(const struct availability *a, int64_t realtime_ns,
                      struct availability_share *ret)
{
    const int64_t now = realtime_ns / HOUR_NS;
    int64_t up = 0, known = 0;
    for (int day = 0; day < AVAILABILITY_DAYS; day++) {
        const int64_t last = now - 24 * (AVAILABILITY_DAYS - 1 - day);
        int64_t day_up = 0, day_known = 0;
        for (int64_t hour = last - 23; hour <= last; hour++) {
            const struct availability_hour *bucket = availability_hour(a, hour);
            day_up += bucket ? bucket->up_ms : 0;
            day_known += bucket ? bucket->known_ms : 0;
        }
        ret->day[day] = share_of(day_up, day_known);
        up += day_up;
        known += day_known;
    }
    ret->share = share_of(up, known);
    ret->known_s = known / 1000;
}

// --- the camera

static void release(struct subscriptions *subscriptions)
{
    if (subscriptions && subscriptions_release(subscriptions))
        subscriptions_close(subscriptions, NULL);
}

static void on_released(struct event *event)
{
    struct subscriptions *released =
        (struct subscriptions *)((char *)event - offsetof(struct subscriptions, released));
    const struct camera *camera = released->owner;
    subscriptions_close(released, NULL);
    previews_reap(camera->preview.previews);
    camera->context.released(camera->context.opaque);
}

static struct subscriptions *own(struct camera *camera, struct subscriptions *subscriptions)
{
    subscriptions->released.callback = on_released;
    subscriptions->owner = camera;
    return subscriptions;
}

// Gives the thread the camera's outputs and its previews'. A list that the thread has used is
// closed by its event, which comes after the events of its outputs. Without a thread there are no
// pictures to view, and another one may be releasing the device.
static void serve_outputs(struct camera *camera)
{
    struct subscriptions *viewed = NULL;
    if (camera->joined && !camera->released)
        return;
    if (!camera->joined)
        viewed = preview_source_extend(&camera->preview);
    viewed = viewed ? own(camera, viewed) : subscriptions_acquire(camera->subscriptions);
    release(atomic_exchange(&camera->given, viewed));
    if (camera->started && !camera->joined)
        camera_wake(camera);
    else
        release(camera_switch(camera));
}

static void previews_changed(struct preview_source *source)
{
    serve_outputs((struct camera *)((char *)source - offsetof(struct camera, preview)));
}

static int open_scene(struct camera *camera)
{
    return scene_open(&camera->scene, &(struct scene_context){
                                          .config = camera->config,
                                          .lease = &camera->lease,
                                          .report = &camera->report.scene,
                                      });
}

static int open_work(struct camera *camera)
{
    return work_open(&camera->work, &(struct work_context){
                                        .lease = &camera->lease,
                                        .events = camera->context.events,
                                        .subscriptions = camera->outputs,
                                        .fps = camera->config->fps,
                                        .scene = camera->scene,
                                        .stop = &camera->stop,
                                        .stages = &camera->report.stages,
                                        .decode = camera->context.decode,
                                        .process = camera->context.process,
                                    });
}

static int open_outputs(struct camera *camera, const struct camera_config *config)
{
    const char *name = camera->config->name;
    struct subscriptions *subscriptions;
    int rc = subscriptions_open(&subscriptions, name, config, NULL, camera->context.batches);
    if (rc < 0)
        return rc;
    camera->subscriptions = own(camera, subscriptions);
    camera->outputs = subscriptions_acquire(subscriptions);
    camera->preview = (struct preview_source){.previews = camera->context.previews,
                                              .camera = name,
                                              .outputs = subscriptions,
                                              .changed = previews_changed};
    return 0;
}

int camera_open(struct camera *camera, const struct camera_config *config,
                const struct camera_context *context)
{
    *camera = (struct camera){.config = config_copy_camera(config),
                              .context = *context,
                              .ended.callback = context->ended};
    if (!camera->config)
        return -ENOMEM;
    camera_report_open(&camera->report, context->changed, context->events);
    if (config->paused.line)
        atomic_store(&camera->report.state, CAMERA_PAUSED);
    camera->stream.epoch = config->generation << 16;
    outage_open(&camera->outage, config->url, context->logins);
    pthread_mutex_init(&camera->lock, NULL);
    condition_init(&camera->wake);
    int rc = open_outputs(camera, config);
    if (rc == 0)
        rc = open_scene(camera);
    if (rc == 0)
        rc = open_work(camera);
    if (rc < 0)
        camera_close(camera);
    return rc;
}

void camera_close(struct camera *camera)
{
    if (!camera->config)
        return;
    if (camera->work)
        camera_release_device(camera);
    work_close(camera->work);
    scene_close(camera->scene);
    release(camera->outputs);
    event_cancel(&camera->ended);
    preview_source_close(&camera->preview);
    if (camera->subscriptions)
        subscriptions_close(camera->subscriptions, output_close);
    camera_report_close(&camera->report);
    pthread_cond_destroy(&camera->wake);
    pthread_mutex_destroy(&camera->lock);
    config_free_camera(camera->config);
    *camera = (struct camera){0};
}

void camera_subscribe(struct camera *camera, struct subscriptions *subscriptions)
{
    release(camera->subscriptions);
    camera->subscriptions = own(camera, subscriptions);
    preview_source_follow(&camera->preview, subscriptions);
    serve_outputs(camera);
}

void camera_join(struct camera *camera)
{
    if (camera->started && !camera->joined)
        pthread_join(camera->thread, NULL);
    camera->joined = true;
    release(camera_switch(camera));
}

void camera_released(struct camera *camera)
{
    camera->released = true;
    if (camera->outputs != camera->subscriptions)
        serve_outputs(camera);
}
