#include "daemon/supervisor/reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "config/mistakes.h"
#include "config/object.h"
#include "daemon/base/log.h"

// --- peak memory

static struct output_config *outputs_of(const struct peak_memory *peak, int camera)
{
    return peak->outputs + (size_t)camera * CAMERA_OUTPUTS_MAX;
}

int peak_memory_open(struct peak_memory *peak, const struct config *config, int more)
{
    const size_t room = (size_t)(config->n_cameras + more);
    peak->config = *config;
    peak->config.cameras = calloc(room, sizeof *config->cameras);
    peak->outputs = calloc(room * CAMERA_OUTPUTS_MAX, sizeof *peak->outputs);
    if (!peak->config.cameras || !peak->outputs)
        return -ENOMEM;
    for (int i = 0; i < config->n_cameras; i++) {
        struct camera_config *camera = &peak->config.cameras[i];
        *camera = config->cameras[i];
        memcpy(outputs_of(peak, i), camera->outputs,
               (size_t)camera->n_outputs * sizeof *camera->outputs);
        camera->outputs = outputs_of(peak, i);
    }
    return 0;
}

void peak_memory_close(struct peak_memory *peak)
{
    free(peak->config.cameras);
    free(peak->outputs);
}

static void add_output(struct peak_memory *peak, int i, const struct output *output)
{
    struct camera_config *camera = &peak->config.cameras[i];
    if (camera->n_outputs < CAMERA_OUTPUTS_MAX)
        camera->outputs[camera->n_outputs++] = *output->config;
}

void peak_memory_add_camera(struct peak_memory *peak, const struct camera *camera)
{
    const int i = peak->config.n_cameras++;
    peak->config.cameras[i] = *camera->config;
    peak->config.cameras[i].outputs = outputs_of(peak, i);
    peak->config.cameras[i].stream = camera_report_describe(&camera->report).memory;
    for (int o = 0; o < camera->subscriptions->n; o++)
        add_output(peak, i, camera->subscriptions->list[o].output);
}

// --- the plan

enum { PATH_MAX_BYTES = 96 }; // of a key's dotted path, with names of 23 and 15 bytes

// One camera of the new configuration.
struct entry {
    struct camera *camera;               // a running one, or a new one
    bool kept;                           // it is a running one
    bool differs;                        // kept, with other outputs
    struct subscriptions *subscriptions; // its future ones; its own unless `differs`
};

struct reconfigure {
    struct cameras *cameras;
    const struct config *config;
    const char *file;
    FILE *errors;
    int mistakes;
    bool applied;
    struct camera **list; // the future cameras; room for all of the configuration's
    struct entry *entries;
    int n; // built
    struct outlet **added, **removed;
    int n_added, n_removed;
};

// --- what stays

static bool same_outputs(const struct camera *camera, const struct camera_config *config)
{
    for (int i = 0; i < config->n_outputs; i++)
        if (!subscriptions_find_same(camera->subscriptions, &config->outputs[i]))
            return false;
    return camera->subscriptions->n == config->n_outputs;
}

// A camera that has ended restarts if anything of it is different.
static bool is_kept(const struct camera *camera, const struct camera_config *config)
{
    return config_same_camera(camera->config, config) &&
           (!camera->joined || same_outputs(camera, config));
}

static const struct entry *entry_of(const struct reconfigure *plan, const struct camera *camera)
{
    for (int i = 0; i < plan->n; i++)
        if (plan->entries[i].camera == camera)
            return &plan->entries[i];
    return NULL;
}

// Appends the outlets of outputs that are not in `others` to a list, except those of batches.
static void append_missing(const struct subscriptions *outputs, const struct subscriptions *others,
                           struct outlet **list, int *n)
{
    for (int i = 0; i < outputs->n; i++)
        if (!outputs->list[i].output->parent &&
            (!others || !subscriptions_have(others, outputs->list[i].output)))
            list[(*n)++] = outputs->list[i].output->outlet;
}

static bool will_be_filled(const struct reconfigure *plan, const struct outlet *batch)
{
    for (int i = 0; i < plan->n; i++)
        if (subscriptions_fill(plan->entries[i].subscriptions, batch))
            return true;
    return false;
}

static void find_batches(struct reconfigure *plan)
{
    const struct cameras *cameras = plan->cameras;
    for (struct outlet *batch = cameras->batches; batch; batch = batch->next) {
        const bool is = cameras_fill(cameras, batch), will = will_be_filled(plan, batch);
        if (batch->finished)
            continue;
        if (will && !is)
            plan->added[plan->n_added++] = batch;
        else if (is && !will)
            plan->removed[plan->n_removed++] = batch;
    }
}

static int find_differences(struct reconfigure *plan)
{
    const struct cameras *cameras = plan->cameras;
    size_t batches = 0;
    for (const struct outlet *batch = cameras->batches; batch; batch = batch->next)
        batches++;
    plan->added = calloc((size_t)plan->n * CAMERA_OUTPUTS_MAX + batches + 1, sizeof *plan->added);
    plan->removed =
        calloc((size_t)cameras->n * CAMERA_OUTPUTS_MAX + batches + 1, sizeof *plan->removed);
    if (!plan->added || !plan->removed)
        return -ENOMEM;
    for (int i = 0; i < plan->n; i++) {
        const struct entry *entry = &plan->entries[i];
        append_missing(entry->subscriptions, entry->kept ? entry->camera->subscriptions : NULL,
                       plan->added, &plan->n_added);
    }
    for (int i = 0; i < cameras->n; i++) {
        const struct entry *entry = entry_of(plan, cameras->list[i]);
        append_missing(cameras->list[i]->subscriptions, entry ? entry->subscriptions : NULL,
                       plan->removed, &plan->n_removed);
    }
    find_batches(plan);
    return 0;
}

// --- building

static int build_camera(struct reconfigure *plan, const struct camera_config *config)
{
    struct entry *entry = &plan->entries[plan->n];
    struct camera *camera = cameras_find(plan->cameras, config->name);
    int rc = 0;
    if (!camera || !is_kept(camera, config)) {
        rc = cameras_make_camera(plan->cameras, config, &entry->camera);
        camera = entry->camera;
    } else {
        entry->camera = camera;
        entry->kept = true;
        entry->differs = !same_outputs(camera, config);
    }
    if (rc == 0)
        entry->subscriptions = camera->subscriptions;
    if (rc == 0 && entry->differs)
        rc = subscriptions_open(&entry->subscriptions, camera->config->name, config,
                                camera->subscriptions, &plan->cameras->batches);
    entry->differs &= rc == 0;
    plan->list[plan->n] = entry->camera;
    plan->n += entry->camera != NULL;
    return rc;
}

// --- sinks

// True if the listener of one output may serve the other.
static bool same_listener(const struct output_config *a, const struct output_config *b)
{
    if (a->sink.kind == SINK_TCP)
        return b->sink.kind == SINK_TCP && a->sink.port == b->sink.port &&
               strcmp(address_host(&a->sink), address_host(&b->sink)) == 0;
    return a->sink.kind == b->sink.kind && a->sink.path && a->sink.kind != SINK_FILE &&
           strcmp(a->sink.path, b->sink.path) == 0 && a->mode.mode == b->mode.mode &&
           strcmp(a->group ? a->group : "", b->group ? b->group : "") == 0;
}

static bool have_same_name(const struct outlet *a, const struct outlet *b)
{
    return strcmp(a->camera, b->camera) == 0 && strcmp(a->config->name, b->config->name) == 0;
}

// A port that the system has chosen stays with its output.
static bool has_address_of(const struct outlet *removed, const struct outlet *added)
{
    return address_collides(&removed->config->sink, &added->config->sink) ||
           (have_same_name(removed, added) && same_listener(removed->config, added->config));
}

static struct outlet *outlet_at_address(const struct reconfigure *plan, const struct outlet *added)
{
    for (int i = 0; i < plan->n_removed; i++)
        if (has_address_of(plan->removed[i], added))
            return plan->removed[i];
    return NULL;
}

// True if the listener of `holder`, which may be NULL, goes to the added output.
static bool inherits_listener(const struct outlet *added, const struct outlet *holder)
{
    return holder && holder->sink && same_listener(holder->config, added->config);
}

// Returns its path in the configuration.
static const char *path_of(const struct outlet *outlet, char to[PATH_MAX_BYTES])
{
    if (outlet->batch)
        snprintf(to, PATH_MAX_BYTES, "batches.%s", outlet->config->name);
    else
        snprintf(to, PATH_MAX_BYTES, "cameras.%s.outputs.%s", outlet->camera, outlet->config->name);
    return to;
}

static void refuse_sink(struct reconfigure *plan, const struct outlet *outlet, const char *why)
{
    char path[PATH_MAX_BYTES], key[PATH_MAX_BYTES + sizeof ".sink"];
    snprintf(key, sizeof key, "%s.sink", path_of(outlet, path));
    mistake_print(plan->errors, &plan->config->files, outlet->config->place, key, why);
    plan->mistakes++;
}

// Everything is opened before anything is closed, and a port has one listener: our present listener
// keeps us from listening on another host with that port.
static bool keeps_port(const struct outlet *added, const struct outlet *holder)
{
    return added->config->sink.kind == SINK_TCP && holder && holder->sink;
}

// True if an ending output has the name, which it frees before the added one takes it.
static bool frees_shared(const struct reconfigure *plan, const struct outlet *added)
{
    const char *name = added->config->shared.name;
    for (int i = 0; i < plan->n_removed; i++) {
        const struct outlet *removed = plan->removed[i];
        if (removed->sink && removed->config->shared.name &&
            strcmp(removed->config->shared.name, name) == 0)
            return true;
    }
    return false;
}

static void prepare_shared(struct reconfigure *plan, const struct outlet *added)
{
    const char *name = added->config->shared.name;
    char why[256];
    if (name && !frees_shared(plan, added) && shared_object_check(name, why, sizeof why) < 0)
        refuse_sink(plan, added, why);
}

static void prepare_sink(struct reconfigure *plan, struct outlet *added)
{
    const struct outlet *before = outlet_at_address(plan, added);
    char why[256] = "", path[PATH_MAX_BYTES];
    prepare_shared(plan, added);
    if (inherits_listener(added, before))
        return;
    if (!before || !before->sink)
        before = cameras_writer(plan->cameras, &added->config->sink);
    int rc = sink_prepare(&added->listener, added->config, before ? before->sink : NULL, why,
                          sizeof why);
    if (rc == -EADDRINUSE && keeps_port(added, before))
        snprintf(why, sizeof why,
                 "%s listens on %s port %d, whose host no reload can change (another port, or a "
                 "restart of framed)",
                 path_of(before, path), address_host(&before->config->sink),
                 before->config->sink.port);
    if (rc < 0)
        refuse_sink(plan, added, why);
}

static void publish_listener(struct outlet *added)
{
    int rc = added->listener.fd < 0 ? 0 : listener_publish(&added->listener);
    if (rc == 0)
        return;
    log_camera(added->camera);
    log_event(LOG_LEVEL_ERROR, "output=%s cannot listen on %s: %s", added->config->name,
              added->config->sink.path, strerror(-rc));
    log_camera(NULL);
    listener_close(&added->listener); // opening the sink tries again
}

static void take_listener(struct outlet *added, struct outlet *holder)
{
    if (inherits_listener(added, holder))
        sink_yield(holder->sink, &added->listener);
    if (added->listener.path)
        added->listener.path = added->config->sink.path;
    publish_listener(added);
}

// --- all or nothing

static int build_all(struct reconfigure *plan)
{
    const struct config *config = plan->config;
    const size_t n = (size_t)config->n_cameras + 1; // not 0, so that NULL means no memory
    plan->list = calloc(n, sizeof *plan->list);
    plan->entries = calloc(n, sizeof *plan->entries);
    int rc = plan->list && plan->entries ? 0 : -ENOMEM;
    for (int i = 0; rc == 0 && i < config->n_cameras; i++)
        rc = build_camera(plan, &config->cameras[i]);
    return rc == 0 ? find_differences(plan) : rc;
}

// --- memory

static void add_removed_outputs(struct peak_memory *peak, int i, const struct entry *entry)
{
    const struct subscriptions *before = entry->camera->subscriptions;
    for (int o = 0; entry->differs && o < before->n; o++)
        if (!subscriptions_have(entry->subscriptions, before->list[o].output))
            add_output(peak, i, before->list[o].output);
}

static bool is_in(const struct config *config, const struct camera *camera)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (strcmp(config->cameras[i].name, camera->config->name) == 0)
            return true;
    return false;
}

// Adds cameras and outputs that still exist when the new cameras start. A removed camera with a
// successor of its name does not count: the successor waits for its end.
static void add_removed(const struct reconfigure *plan, struct peak_memory *peak)
{
    const struct cameras *cameras = plan->cameras;
    for (int i = 0; i < plan->n; i++)
        add_removed_outputs(peak, i, &plan->entries[i]);
    for (int i = 0; i < cameras->n; i++)
        if (!is_in(plan->config, cameras->list[i]))
            peak_memory_add_camera(peak, cameras->list[i]);
    for (const struct camera *camera = cameras->leaving; camera; camera = camera->next)
        if (!is_in(plan->config, camera))
            peak_memory_add_camera(peak, camera);
}

// Plans a camera by the pictures that it has shown, even if it restarts.
static void add_streams(const struct reconfigure *plan, struct peak_memory *peak)
{
    const struct cameras *cameras = plan->cameras;
    for (int i = 0; i < plan->n; i++) {
        struct camera_config *camera = &peak->config.cameras[i];
        for (int j = 0; j < cameras->n; j++) {
            const struct camera_config *running = cameras->list[j]->config;
            if (strcmp(running->name, camera->name) == 0 && strcmp(running->url, camera->url) == 0)
                camera->stream = camera_report_describe(&cameras->list[j]->report).memory;
        }
    }
}

static int admit_devices(struct reconfigure *plan)
{
    struct peak_memory peak;
    char why[256];
    int more = plan->cameras->n;
    for (const struct camera *camera = plan->cameras->leaving; camera; camera = camera->next)
        more++;
    int rc = peak_memory_open(&peak, plan->config, more);
    if (rc == 0) {
        add_streams(plan, &peak);
        add_removed(plan, &peak);
        rc = devices_admit(plan->cameras->context.devices, &peak.config, why, sizeof why);
        if (rc < 0)
            fprintf(plan->errors, "%s: %s\n", plan->file, why);
        plan->mistakes += rc < 0;
    }
    peak_memory_close(&peak);
    return rc == -ENOMEM ? rc : 0;
}

int reconfigure_open(struct reconfigure **ret, struct cameras *cameras, const struct config *config,
                     const char *file, int mistakes, FILE *errors)
{
    struct reconfigure *plan = calloc(1, sizeof *plan);
    if (!plan)
        return -ENOMEM;
    *plan = (struct reconfigure){
        .cameras = cameras, .config = config, .file = file, .errors = errors, .mistakes = mistakes};
    int rc = build_all(plan);
    if (rc == 0 && mistakes == 0)
        rc = admit_devices(plan);
    for (int i = 0; rc == 0 && i < plan->n_added; i++)
        prepare_sink(plan, plan->added[i]);
    if (rc == 0 && plan->mistakes > 0)
        rc = -EINVAL;
    if (rc < 0)
        reconfigure_close(plan);
    else
        *ret = plan;
    return rc;
}

static void count_outputs(const struct entry *entry, struct reload_result *ret)
{
    const struct subscriptions *before = entry->camera->subscriptions,
                               *after = entry->subscriptions;
    for (int i = 0; i < after->n; i++) {
        if (subscriptions_have(before, after->list[i].output))
            continue;
        bool replaces = subscriptions_find(before, after->list[i].output->config->name);
        ret->outputs_changed += replaces;
        ret->outputs_added += !replaces;
    }
    for (int i = 0; i < before->n; i++)
        ret->outputs_removed += !subscriptions_find(after, before->list[i].output->config->name);
}

static void count_changes(const struct reconfigure *plan, struct reload_result *ret)
{
    *ret = (struct reload_result){.removed = plan->cameras->n};
    for (int i = 0; i < plan->n; i++) {
        const struct entry *entry = &plan->entries[i];
        bool had = cameras_find(plan->cameras, entry->camera->config->name);
        ret->removed -= had;
        ret->kept += entry->kept;
        ret->changed += had && !entry->kept;
        ret->added += !had;
        if (entry->kept)
            count_outputs(entry, ret);
    }
}

// Outputs stay while their `detections` change; for a share, its batch stays.
static void set_detections(const struct entry *entry, const struct camera_config *config,
                           struct reload_result *ret)
{
    for (int i = 0; i < config->n_outputs; i++) {
        const struct output *output =
            subscriptions_find(entry->subscriptions, config->outputs[i].name);
        const int rc = outlet_set_detections(output->outlet, &config->outputs[i]);
        ret->outputs_changed += rc > 0;
        if (rc < 0)
            log_event(LOG_LEVEL_ERROR, "output=%s detections stay as they are: %s",
                      config->outputs[i].name, strerror(-rc));
    }
}

void reconfigure_apply(struct reconfigure *plan, struct reload_result *ret)
{
    count_changes(plan, ret);
    for (int i = 0; i < plan->n_added; i++)
        take_listener(plan->added[i], outlet_at_address(plan, plan->added[i]));
    for (int i = 0; i < plan->n_removed; i++)
        outlet_yield(plan->removed[i]);
    for (int i = 0; i < plan->n_removed; i++)
        if (plan->removed[i]->batch)
            outlet_finish(plan->removed[i], DRAIN_LEAVING_MS);
    for (int i = 0; i < plan->n; i++)
        if (plan->entries[i].kept && plan->entries[i].differs)
            cameras_set_outputs(plan->cameras, plan->entries[i].camera,
                                plan->entries[i].subscriptions);
    for (int i = 0; i < plan->n; i++)
        set_detections(&plan->entries[i], &plan->config->cameras[i], ret);
    cameras_set(plan->cameras, plan->list, plan->n);
    plan->list = NULL;
    plan->applied = true;
    cameras_settle(plan->cameras);
}

static void drop_entry(const struct entry *entry)
{
    if (!entry->kept) {
        camera_close(entry->camera);
        free(entry->camera);
        return;
    }
    if (entry->differs)
        subscriptions_close(entry->subscriptions, output_close); // outputs of no other list
}

void reconfigure_close(struct reconfigure *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->n && !plan->applied; i++)
        drop_entry(&plan->entries[i]);
    cameras_forget_batches(plan->cameras); // new batches of a plan that was not applied
    free(plan->list);
    free(plan->entries);
    free(plan->added);
    free(plan->removed);
    free(plan);
}
