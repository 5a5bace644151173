#include "daemon/supervisor/cameras.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "daemon/base/access.h"
#include "daemon/base/log.h"
#include "daemon/work/work.h"

enum {
    BURST = 16,      // cameras that start at once when none runs yet
    START_MS = 43,   // between later starts: probing a stream takes a processor; no multiple of a
                     // frame's interval, or all frames would arrive at once
    RETRY_MS = 1000, // between tries to start a thread
    TEND_MS = 1000,  // between checks of all sinks
};

// --- who is there

struct camera *cameras_find(const struct cameras *cameras, const char *name)
{
    for (int i = 0; i < cameras->n; i++)
        if (strcmp(cameras->list[i]->config->name, name) == 0)
            return cameras->list[i];
    return NULL;
}

static bool is_leaving(const struct cameras *cameras, const struct camera *camera)
{
    const struct camera *leaving = cameras->leaving;
    while (leaving && leaving != camera)
        leaving = leaving->next;
    return leaving;
}

// A batch's sink counts once it finishes: before that, other cameras fill it.
static bool has_sink(const struct camera *camera)
{
    for (int i = 0; i < camera->subscriptions->n; i++) {
        const struct output *output = camera->subscriptions->list[i].output;
        const struct outlet *outlet = output->outlet;
        if ((!output->parent || outlet->finished) && outlet_is_open(outlet))
            return true;
    }
    return false;
}

// Clients of a batch may still hold frames of an output that no thread fills any more.
static bool has_frames_in_batches(struct output *output)
{
    return output->parent && !output_has_drained(output);
}

static bool any_frames_in_batches(const struct camera *camera)
{
    for (int i = 0; i < camera->subscriptions->n; i++)
        if (has_frames_in_batches(camera->subscriptions->list[i].output))
            return true;
    return false;
}

// True if outputs removed from the camera still exist: they use its name.
static bool has_leaving_outputs(const struct cameras *cameras, const struct camera *camera)
{
    const struct output *output = cameras->leaving_outputs;
    while (output && output->camera != camera->config->name)
        output = output->next;
    return output;
}

static void start_next(uv_timer_t *timer);

// --- batches

bool batch_has_cameras(const struct outlet *batch, struct camera *const cameras[], int n)
{
    for (int i = 0; i < n; i++)
        if (subscriptions_fill(cameras[i]->subscriptions, batch))
            return true;
    return false;
}

bool cameras_fill(const struct cameras *cameras, const struct outlet *batch)
{
    for (int i = 0; i < cameras->n; i++)
        if (!cameras->list[i]->joined && batch_has_cameras(batch, &cameras->list[i], 1))
            return true;
    return false;
}

// Polled: the thread may be in a driver or unmap memory, so the loop thread does not wait.
static bool is_over(struct outlet *batch)
{
    if (batch->shares > 0 || outlet_is_open(batch))
        return false;
    batch->finished = true; // no share joins it any more
    return batch_stop(batch->batch, false);
}

void cameras_forget_batches(struct cameras *cameras)
{
    struct outlet **link = &cameras->batches;
    while (*link) {
        struct outlet *batch = *link;
        if (!is_over(batch)) {
            link = &batch->next;
            continue;
        }
        *link = batch->next;
        outlet_close(batch);
    }
}

// Finishes the sinks of the camera's batches that no camera fills any more.
static void finish_batches(struct cameras *cameras, const struct camera *ended, int grace_ms)
{
    for (int i = 0; i < ended->subscriptions->n; i++)
        if (ended->subscriptions->list[i].output->parent)
            batch_end(&ended->subscriptions->list[i].output->share);
    for (struct outlet *batch = cameras->batches; batch; batch = batch->next)
        if (subscriptions_fill(ended->subscriptions, batch) && !cameras_fill(cameras, batch))
            outlet_finish(batch, grace_ms);
}

static void start_batch(struct cameras *cameras, struct outlet *batch)
{
    if (batch->finished)
        return;
    int rc = batch_start(batch->batch, work_resume, cameras->context.events, &batch->ready);
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "output=%s no thread: %s", batch->config->name, strerror(-rc));
}

// --- the end of a camera, an output

static void forget_camera(struct cameras *cameras, struct camera *camera)
{
    struct camera *successor = cameras_find(cameras, camera->config->name);
    if (successor && !successor->started)
        camera_continue(successor, camera);
    for (int i = 0; i < camera->subscriptions->n; i++)
        output_log_account(camera->subscriptions->list[i].output, false);
    camera_close(camera);
    free(camera);
}

static void forget_output(struct output *output)
{
    output_log_account(output, false);
    output_close(output);
}

// No event of an output without subscribers is queued: the thread that filled the output released
// its subscriptions after that event.
static void forget_outputs(struct cameras *cameras)
{
    struct output **link = &cameras->leaving_outputs;
    while (*link) {
        struct output *output = *link;
        const bool open = !output->parent && outlet_is_open(output->outlet);
        if (open || output->subscribers > 0 || has_frames_in_batches(output)) {
            link = &output->next;
            continue;
        }
        *link = output->next;
        forget_output(output);
    }
}

static void forget_cameras(struct cameras *cameras)
{
    struct camera **link = &cameras->leaving;
    while (*link) {
        struct camera *camera = *link;
        if (!camera->released || has_leaving_outputs(cameras, camera) ||
            any_frames_in_batches(camera)) {
            link = &camera->next;
            continue;
        }
        *link = camera->next;
        forget_camera(cameras, camera);
    }
}

static struct cameras *cameras_of_release(struct work *work)
{
    return (struct cameras *)((char *)work - offsetof(struct cameras, release));
}

static void release_device(struct work *work)
{
    camera_release_device(cameras_of_release(work)->releasing);
}

static void device_was_released(struct work *work)
{
    struct cameras *cameras = cameras_of_release(work);
    camera_released(cameras->releasing);
    cameras->releasing = NULL;
    cameras_settle(cameras);
}

static bool holds_device(const struct camera *camera)
{
    return camera->joined && !has_sink(camera) && !camera->released;
}

// One camera after another, so that a driver that hangs takes one thread. Sinks may read results on
// the device until they are closed.
static void release_next_device(struct cameras *cameras)
{
    struct camera *camera = cameras->leaving;
    while (camera && !holds_device(camera))
        camera = camera->next;
    for (int i = 0; !camera && i < cameras->n; i++)
        if (holds_device(cameras->list[i]))
            camera = cameras->list[i];
    if (!camera || cameras->releasing)
        return;
    cameras->releasing = camera;
    work_start(cameras->context.work, &cameras->release);
}

// Frees ended outputs and cameras; then opens sinks and starts cameras that waited for them.
static void forget_and_start(struct cameras *cameras)
{
    forget_outputs(cameras);
    forget_cameras(cameras);
    cameras_forget_batches(cameras);
    if (cameras->stopping)
        return;
    cameras_open_sinks(cameras);
    if (!uv_is_active((uv_handle_t *)&cameras->starts))
        start_next(&cameras->starts);
}

void cameras_settle(struct cameras *cameras)
{
    release_next_device(cameras);
    forget_and_start(cameras);
    const bool waits = (cameras->n == 0 || cameras->context.stays) &&
                       !cameras->stopping; // for somebody to add a camera
    if (waits || cameras->n_threads > 0 || cameras->n_sinks > 0 || cameras->leaving_outputs ||
        cameras->releasing)
        return;
    for (struct outlet *batch = cameras->batches; batch; batch = batch->next)
        batch_stop(batch->batch, true);
    cameras->context.done(cameras->context.opaque);
}

static void sink_was_closed(struct outlet *outlet)
{
    struct cameras *cameras = outlet->owner;
    cameras->n_sinks--;
    cameras_settle(cameras);
}

static void finish_sinks(struct cameras *cameras, struct camera *camera)
{
    bool soon = cameras->stopping || is_leaving(cameras, camera);
    const int grace_ms = soon ? DRAIN_LEAVING_MS : DRAIN_MS;
    for (int i = 0; i < camera->subscriptions->n; i++)
        output_finish(camera->subscriptions->list[i].output, grace_ms);
    finish_batches(cameras, camera, grace_ms);
}

static void end_camera(struct cameras *cameras, struct camera *camera)
{
    camera_join(camera);
    cameras->n_threads--;
    finish_sinks(cameras, camera);
}

static void camera_ended(struct event *event)
{
    struct camera *camera = (struct camera *)((char *)event - offsetof(struct camera, ended));
    struct cameras *cameras = camera->context.opaque;
    end_camera(cameras, camera);
    cameras_settle(cameras);
}

static void camera_changed(struct event *event)
{
    struct camera *camera =
        (struct camera *)((char *)event - offsetof(struct camera, report.changed));
    const struct cameras *cameras = camera->context.opaque;
    cameras->context.changed(cameras->context.opaque, camera);
}

static void subscriptions_released(void *opaque)
{
    cameras_settle(opaque);
}

static void stop_camera(struct cameras *cameras, struct camera *camera)
{
    if (camera->joined)
        finish_sinks(cameras, camera); // now with less patience
    else if (camera->started)
        camera_stop(camera);
    else
        end_camera(cameras, camera);
}

// --- cameras and outputs that come and go

int cameras_make_camera(struct cameras *cameras, const struct camera_config *config,
                        struct camera **ret)
{
    const struct camera_context context = {
        .devices = cameras->context.devices,
        .logins = cameras->context.logins,
        .events = cameras->context.events,
        .previews = cameras->context.previews,
        .batches = &cameras->batches,
        .decode = cameras->context.decode,
        .process = cameras->context.process,
        .ended = camera_ended,
        .changed = camera_changed,
        .released = subscriptions_released,
        .opaque = cameras,
    };
    struct camera *camera = calloc(1, sizeof *camera);
    int rc = camera ? camera_open(camera, config, &context) : -ENOMEM;
    if (rc == 0)
        *ret = camera;
    else
        free(camera);
    return rc;
}

static bool list_has(struct camera *const *list, int n, const struct camera *camera)
{
    for (int i = 0; i < n; i++)
        if (list[i] == camera)
            return true;
    return false;
}

void cameras_set(struct cameras *cameras, struct camera **list, int n)
{
    struct camera **before = cameras->list;
    const int n_before = cameras->n;
    cameras->list = list;
    cameras->n = n;
    for (int i = 0; i < n; i++) {
        if (list_has(before, n_before, list[i]))
            continue;
        cameras->n_threads++;
        subscriptions_follow(list[i]->subscriptions, cameras->context.work);
    }
    for (int i = 0; i < n_before; i++) {
        if (list_has(list, n, before[i]))
            continue;
        before[i]->next = cameras->leaving;
        cameras->leaving = before[i];
        stop_camera(cameras, before[i]);
    }
    free(before);
}

void cameras_set_outputs(struct cameras *cameras, struct camera *camera,
                         struct subscriptions *subscriptions)
{
    const struct subscriptions *before = camera->subscriptions;
    for (int i = 0; i < before->n; i++) {
        struct output *output = before->list[i].output;
        if (subscriptions_have(subscriptions, output))
            continue;
        output->next = cameras->leaving_outputs;
        cameras->leaving_outputs = output;
        output_finish(output, DRAIN_LEAVING_MS);
    }
    if (!camera->joined)
        subscriptions_follow(subscriptions, cameras->context.work);
    camera_subscribe(camera, subscriptions);
}

// --- sinks

static bool writes_to(const struct outlet *outlet, const struct sink_address *file)
{
    if (outlet->lines && outlet->lines->sink && address_collides(&outlet->lines->config.sink, file))
        return true;
    return outlet->sink && address_collides(&outlet->config->sink, file);
}

// Returns the output's own outlet if that writes the file; else NULL.
static const struct outlet *writer_of(const struct output *output, const struct sink_address *file)
{
    return !output->parent && writes_to(output->outlet, file) ? output->outlet : NULL;
}

const struct outlet *cameras_writer(const struct cameras *cameras, const struct sink_address *file)
{
    if (file->kind != SINK_FILE || file->timed)
        return NULL;
    const struct outlet *found = NULL;
    for (const struct output *output = cameras->leaving_outputs; output && !found;
         output = output->next)
        found = writer_of(output, file);
    for (const struct camera *camera = cameras->leaving; camera; camera = camera->next)
        for (int i = 0; i < camera->subscriptions->n && !found; i++)
            found = writer_of(camera->subscriptions->list[i].output, file);
    for (const struct outlet *batch = cameras->batches; batch && !found; batch = batch->next)
        if (batch->finished && writes_to(batch, file))
            found = batch;
    return found;
}

// Opens the outlet's sinks that are configured and not open.
static void open_sink(struct cameras *cameras, struct outlet *outlet)
{
    uv_loop_t *loop = cameras->context.loop;
    if (outlet->finished)
        return;
    outlet->closed = sink_was_closed;
    outlet->owner = cameras;
    if (!outlet->sink && !cameras_writer(cameras, &outlet->config->sink) &&
        outlet_listen(outlet, loop) == 0)
        cameras->n_sinks++;
    if (outlet_wants_lines(outlet) && !cameras_writer(cameras, &outlet->lines->config.sink) &&
        outlet_listen_lines(outlet, loop) == 0)
        cameras->n_sinks++;
}

void cameras_open_sinks(struct cameras *cameras)
{
    for (int i = 0; i < cameras->n; i++) {
        const struct subscriptions *outputs = cameras->list[i]->subscriptions;
        for (int o = 0; o < outputs->n; o++)
            if (!outputs->list[o].output->parent)
                open_sink(cameras, outputs->list[o].output->outlet);
    }
    for (struct outlet *batch = cameras->batches; batch; batch = batch->next)
        if (cameras_fill(cameras, batch)) {
            open_sink(cameras, batch);
            start_batch(cameras, batch);
        }
}

static void check_paths(const struct cameras *cameras)
{
    for (int i = 0; i < cameras->n; i++) {
        const struct subscriptions *outputs = cameras->list[i]->subscriptions;
        for (int o = 0; o < outputs->n; o++)
            if (!outputs->list[o].output->parent)
                outlet_check_paths(outputs->list[o].output->outlet);
    }
    for (const struct outlet *batch = cameras->batches; batch; batch = batch->next)
        outlet_check_paths(batch);
}

// --- groups of outputs that were not found yet: look-ups may block

struct group_search {
    struct work work;
    struct cameras *cameras;
    int n;
    struct group {
        char *name;
        gid_t id;
        bool found;
    } group[];
};

static void search_groups(struct work *work)
{
    struct group_search *search = (struct group_search *)work;
    for (int i = 0; i < search->n; i++)
        search->group[i].found = group_look_up(search->group[i].name, &search->group[i].id) == 0;
}

static void set_group(struct output_config *output, const struct group_search *search)
{
    for (int i = 0; i < search->n; i++)
        if (search->group[i].found && output->group &&
            strcmp(search->group[i].name, output->group) == 0) {
            output->group_id = search->group[i].id;
            output->has_group_id = true;
        }
    struct detections_config *lines = &output->detections;
    for (int i = 0; i < search->n; i++)
        if (search->group[i].found && lines->group &&
            strcmp(search->group[i].name, lines->group) == 0) {
            lines->group_id = search->group[i].id;
            lines->has_group_id = true;
        }
}

static void groups_were_searched(struct work *work)
{
    struct group_search *search = (struct group_search *)work;
    struct cameras *cameras = search->cameras;
    for (int i = 0; i < cameras->n; i++) {
        const struct subscriptions *outputs = cameras->list[i]->subscriptions;
        for (int o = 0; o < outputs->n; o++)
            set_group(outputs->list[o].output->outlet->config, search);
    }
    for (int i = 0; i < search->n; i++)
        free(search->group[i].name);
    free(search);
    cameras->search = NULL;
}

static void add_group(struct group_search *search, const char *name)
{
    char *copy = strdup(name);
    if (copy)
        search->group[search->n++].name = copy;
}

static void start_search(struct cameras *cameras)
{
    struct group_search *search = calloc(
        1, sizeof *search + 2 * (size_t)cameras->n * CAMERA_OUTPUTS_MAX * sizeof search->group[0]);
    for (int i = 0; search && i < cameras->n; i++) {
        const struct subscriptions *outputs = cameras->list[i]->subscriptions;
        for (int o = 0; o < outputs->n; o++) {
            const struct output_config *output = outputs->list[o].output->outlet->config;
            if (output->group && !output->has_group_id)
                add_group(search, output->group);
            if (output->detections.group && !output->detections.has_group_id)
                add_group(search, output->detections.group);
        }
    }
    if (!search || search->n == 0) {
        free(search);
        return;
    }
    search->work = (struct work){.run = search_groups, .done = groups_were_searched};
    search->cameras = cameras;
    cameras->search = search;
    work_start(cameras->context.work, &search->work);
}

// Retries a folder that is not mounted yet, a port held by another program, or a socket that was
// removed: the rest works meanwhile.
static void tend_sinks(uv_timer_t *timer)
{
    struct cameras *cameras = timer->data;
    check_paths(cameras);
    forget_and_start(cameras); // clients held frames of ended ones
    if (!cameras->search)
        start_search(cameras);
}

// --- starts

static bool is_startable(const struct cameras *cameras, const struct camera *camera)
{
    if (camera->started || camera->joined || camera->config->paused.line)
        return false;
    const struct camera *leaving = cameras->leaving;
    while (leaving && strcmp(leaving->config->name, camera->config->name) != 0)
        leaving = leaving->next;
    return !leaving;
}

static struct camera *next_to_start(const struct cameras *cameras)
{
    for (int i = 0; i < cameras->n; i++)
        if (is_startable(cameras, cameras->list[i]))
            return cameras->list[i];
    return NULL;
}

static int start_camera(struct camera *camera)
{
    int rc = camera_start(camera);
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "camera=%s no thread: %s", camera->config->name, strerror(-rc));
    return rc;
}

static void start_next(uv_timer_t *timer)
{
    struct cameras *cameras = timer->data;
    struct camera *camera = next_to_start(cameras);
    if (camera)
        uv_timer_start(timer, start_next, start_camera(camera) < 0 ? RETRY_MS : START_MS, 0);
}

int cameras_start(struct cameras *cameras)
{
    uv_timer_start(&cameras->sinks, tend_sinks, TEND_MS, TEND_MS);
    struct camera *camera;
    int rc = 0;
    for (int i = 0; rc == 0 && i < BURST && (camera = next_to_start(cameras)); i++)
        rc = start_camera(camera);
    uv_timer_start(&cameras->starts, start_next, rc < 0 ? RETRY_MS : START_MS, 0);
    return rc;
}

// --- from the start to the end

void cameras_open(struct cameras *cameras, const struct cameras_context *context)
{
    *cameras = (struct cameras){
        .context = *context,
        .release = {.run = release_device, .done = device_was_released},
    };
    uv_timer_init(context->loop, &cameras->sinks);
    uv_timer_init(context->loop, &cameras->starts);
    cameras->sinks.data = cameras->starts.data = cameras;
}

void cameras_stop(struct cameras *cameras)
{
    cameras->stopping = true;
    uv_timer_stop(&cameras->sinks);
    uv_timer_stop(&cameras->starts);
    for (int i = 0; i < cameras->n; i++)
        stop_camera(cameras, cameras->list[i]);
    cameras_settle(cameras);
}

// A run that is stopped may be without frames.
static bool output_fails(const struct cameras *cameras, const struct output *output)
{
    return !cameras->stopping && output_is_silent(output);
}

static bool camera_fails(const struct cameras *cameras, const struct camera *camera)
{
    for (int i = 0; i < camera->subscriptions->n; i++)
        if (output_fails(cameras, camera->subscriptions->list[i].output))
            return true;
    return atomic_load(&camera->report.state) == CAMERA_FAILED;
}

bool cameras_fails(const struct cameras *cameras)
{
    for (int i = 0; i < cameras->n; i++)
        if (camera_fails(cameras, cameras->list[i]))
            return true;
    return false;
}

void cameras_close_handles(struct cameras *cameras)
{
    uv_close((uv_handle_t *)&cameras->sinks, NULL);
    uv_close((uv_handle_t *)&cameras->starts, NULL);
}

void cameras_close(struct cameras *cameras)
{
    for (int i = 0; i < cameras->n; i++) {
        const struct subscriptions *outputs = cameras->list[i]->subscriptions;
        for (int o = 0; o < outputs->n; o++)
            output_log_account(outputs->list[o].output,
                               output_fails(cameras, outputs->list[o].output));
    }
    for (int i = 0; i < cameras->n; i++) {
        camera_close(cameras->list[i]);
        free(cameras->list[i]);
    }
    free(cameras->list);
    for (struct outlet *batch = cameras->batches, *next; batch; batch = next) {
        next = batch->next;
        outlet_close(batch);
    }
}
