#include "daemon/supervisor/reconfigure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "config/object.h"
#include "daemon/base/log.h"
#include "daemon/supervisor/peak_memory.h"

// One camera of the new configuration.
struct entry {
    struct camera *camera;               // one that the roster has, or a fresh one
    bool kept;                           // the roster has it...
    bool differs;                        // ...with other outputs
    struct subscriptions *subscriptions; // as they are to be; the camera's own unless `differs`
};

struct reconfigure {
    struct cameras *roster;
    const struct config *config;
    const char *file;
    FILE *errors;
    int mistakes;
    bool applied;
    struct camera **cameras; // as they are to be; room for all of the configuration's
    struct entry *entries;
    int n; // built
    // Outputs that the roster does not have yet, and those that it is to do without.
    struct output **fresh, **going;
    int n_fresh, n_going;
};

// --- what stays

static bool same_outputs(const struct camera *camera, const struct camera_config *config)
{
    for (int i = 0; i < config->n_outputs; i++)
        if (!subscriptions_find_same(camera->subscriptions, &config->outputs[i]))
            return false;
    return camera->subscriptions->n == config->n_outputs;
}

// A camera that has ended begins anew where anything of it is different.
static bool is_kept(const struct camera *camera, const struct camera_config *config)
{
    return config_same_camera(camera->config, config) &&
           (!camera->through || same_outputs(camera, config));
}

static const struct entry *entry_of(const struct reconfigure *change, const struct camera *camera)
{
    for (int i = 0; i < change->n; i++)
        if (change->entries[i].camera == camera)
            return &change->entries[i];
    return NULL;
}

// Appends to a list those outputs that are not among others.
static void append_missing(const struct subscriptions *outputs, const struct subscriptions *others,
                           struct output **list, int *n)
{
    for (int i = 0; i < outputs->n; i++)
        if (!others || !subscriptions_have(others, outputs->list[i].output))
            list[(*n)++] = outputs->list[i].output;
}

static int find_differences(struct reconfigure *change)
{
    const struct cameras *roster = change->roster;
    change->fresh = calloc((size_t)change->n * PLAN_OPS_MAX + 1, sizeof *change->fresh);
    change->going = calloc((size_t)roster->n * PLAN_OPS_MAX + 1, sizeof *change->going);
    if (!change->fresh || !change->going)
        return -ENOMEM;
    for (int i = 0; i < change->n; i++) {
        const struct entry *entry = &change->entries[i];
        append_missing(entry->subscriptions, entry->kept ? entry->camera->subscriptions : NULL,
                       change->fresh, &change->n_fresh);
    }
    for (int i = 0; i < roster->n; i++) {
        const struct entry *entry = entry_of(change, roster->cameras[i]);
        append_missing(roster->cameras[i]->subscriptions, entry ? entry->subscriptions : NULL,
                       change->going, &change->n_going);
    }
    return 0;
}

// --- building

static int build(struct reconfigure *change, const struct camera_config *config)
{
    struct entry *entry = &change->entries[change->n];
    struct camera *camera = cameras_find(change->roster, config->name);
    int rc = 0;
    if (!camera || !is_kept(camera, config)) {
        rc = cameras_make_camera(change->roster, config, &entry->camera);
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
                                camera->subscriptions);
    entry->differs &= rc == 0;
    change->cameras[change->n] = entry->camera;
    change->n += entry->camera != NULL;
    return rc;
}

// --- sinks

// Whether what listens for one output may listen for the other.
static bool same_listener(const struct output_config *a, const struct output_config *b)
{
    if (a->sink.kind == SINK_TCP)
        return b->sink.kind == SINK_TCP && a->sink.port == b->sink.port &&
               strcmp(address_host(&a->sink), address_host(&b->sink)) == 0;
    return a->sink.kind == b->sink.kind && a->sink.kind != SINK_FILE &&
           strcmp(a->sink.path, b->sink.path) == 0 && a->mode.mode == b->mode.mode &&
           strcmp(a->group ? a->group : "", b->group ? b->group : "") == 0;
}

static bool is_of_same_name(const struct output *a, const struct output *b)
{
    return strcmp(a->camera, b->camera) == 0 && strcmp(a->config->name, b->config->name) == 0;
}

// A port that the system has chosen stays with the output that has it.
static bool has_address_of(const struct output *going, const struct output *fresh)
{
    return address_collides(&going->config->sink, &fresh->config->sink) ||
           (is_of_same_name(going, fresh) && same_listener(going->config, fresh->config));
}

static struct output *holder_of_address(const struct reconfigure *change,
                                        const struct output *fresh)
{
    for (int i = 0; i < change->n_going; i++)
        if (has_address_of(change->going[i], fresh))
            return change->going[i];
    return NULL;
}

// What listened for `holder`, or NULL, is to listen for the fresh output.
static bool takes_over(const struct output *fresh, const struct output *holder)
{
    return holder && holder->sink && same_listener(holder->config, fresh->config);
}

static void refuse_sink(struct reconfigure *change, const struct output *output, const char *why)
{
    const struct place at = output->config->place;
    fprintf(change->errors, "%s:%d:%d: cameras.%s.outputs.%s.sink: %s\n", change->file, at.line,
            at.column, output->camera, output->config->name, why);
    change->mistakes++;
}

// Everything is opened before anything is closed, and a port has one listener: what is ours keeps
// it from another host of ours.
static bool is_held(const struct output *fresh, const struct output *holder)
{
    return fresh->config->sink.kind == SINK_TCP && holder && holder->sink;
}

static void prepare_sink(struct reconfigure *change, struct output *fresh)
{
    const struct output *before = holder_of_address(change, fresh);
    char why[256] = "";
    if (takes_over(fresh, before))
        return;
    if (!before || !before->sink)
        before = cameras_writer(change->roster, &fresh->config->sink);
    int rc = sink_prepare(&fresh->listener, fresh->config, before ? before->sink : NULL, why,
                          sizeof why);
    if (rc == -EADDRINUSE && is_held(fresh, before))
        snprintf(why, sizeof why,
                 "cameras.%s.outputs.%s listens on %s port %d, whose host no reload can change "
                 "(another port, or a restart of framed)",
                 before->camera, before->config->name, address_host(&before->config->sink),
                 before->config->sink.port);
    if (rc < 0)
        refuse_sink(change, fresh, why);
}

static void publish(struct output *fresh)
{
    int rc = fresh->listener.fd < 0 ? 0 : listener_publish(&fresh->listener);
    if (rc == 0)
        return;
    log_camera(fresh->camera);
    log_event(LOG_LEVEL_ERROR, "output=%s cannot listen on %s: %s", fresh->config->name,
              fresh->config->sink.path, strerror(-rc));
    log_camera(NULL);
    listener_close(&fresh->listener); // opening the sink tries again
}

static void hand_over(struct output *fresh, struct output *holder)
{
    if (takes_over(fresh, holder))
        sink_yield(holder->sink, &fresh->listener);
    if (fresh->listener.path)
        fresh->listener.path = fresh->config->sink.path;
    publish(fresh);
}

// --- all or nothing

static int build_all(struct reconfigure *change)
{
    const struct config *config = change->config;
    const size_t n = (size_t)config->n_cameras;
    change->cameras = calloc(n, sizeof *change->cameras);
    change->entries = calloc(n, sizeof *change->entries);
    int rc = change->cameras && change->entries ? 0 : -ENOMEM;
    for (int i = 0; rc == 0 && i < config->n_cameras; i++)
        rc = build(change, &config->cameras[i]);
    return rc == 0 ? find_differences(change) : rc;
}

// --- memory

static void add_going_outputs(struct peak_memory *overlap, int i, const struct entry *entry)
{
    const struct subscriptions *before = entry->camera->subscriptions;
    for (int o = 0; entry->differs && o < before->n; o++)
        if (!subscriptions_have(entry->subscriptions, before->list[o].output))
            peak_memory_add_output(overlap, i, before->list[o].output);
}

static bool is_in(const struct config *config, const struct camera *camera)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (strcmp(config->cameras[i].name, camera->config->name) == 0)
            return true;
    return false;
}

// What is still there when the new cameras start. One that goes and has a successor of its name is
// not: that waits for its end.
static void add_going(const struct reconfigure *change, struct peak_memory *overlap)
{
    const struct cameras *roster = change->roster;
    for (int i = 0; i < change->n; i++)
        add_going_outputs(overlap, i, &change->entries[i]);
    for (int i = 0; i < roster->n; i++)
        if (!is_in(change->config, roster->cameras[i]))
            peak_memory_add_camera(overlap, roster->cameras[i]);
    for (const struct camera *camera = roster->leaving; camera; camera = camera->next)
        if (!is_in(change->config, camera))
            peak_memory_add_camera(overlap, camera);
}

// A camera that has shown pictures is planned for by these, also where it is to start anew.
static void add_streams(const struct reconfigure *change, struct peak_memory *overlap)
{
    const struct cameras *roster = change->roster;
    for (int i = 0; i < change->n; i++) {
        struct camera_config *camera = &overlap->config.cameras[i];
        for (int j = 0; j < roster->n; j++) {
            const struct camera_config *running = roster->cameras[j]->config;
            if (strcmp(running->name, camera->name) == 0 && strcmp(running->url, camera->url) == 0)
                camera->stream = camera_memory(roster->cameras[j]);
        }
    }
}

static int admit(struct reconfigure *change)
{
    struct peak_memory overlap;
    char why[256];
    int more = change->roster->n;
    for (const struct camera *camera = change->roster->leaving; camera; camera = camera->next)
        more++;
    int rc = peak_memory_open(&overlap, change->config, more);
    if (rc == 0) {
        add_streams(change, &overlap);
        add_going(change, &overlap);
        rc = devices_admit(change->roster->context.devices, &overlap.config, why, sizeof why);
        if (rc < 0)
            fprintf(change->errors, "%s: %s\n", change->file, why);
        change->mistakes += rc < 0;
    }
    peak_memory_close(&overlap);
    return rc == -ENOMEM ? rc : 0;
}

int reconfigure_open(struct reconfigure **ret, struct cameras *roster, const struct config *config,
                     const char *file, FILE *errors)
{
    struct reconfigure *change = calloc(1, sizeof *change);
    if (!change)
        return -ENOMEM;
    *change =
        (struct reconfigure){.roster = roster, .config = config, .file = file, .errors = errors};
    int rc = build_all(change);
    if (rc == 0)
        rc = admit(change);
    for (int i = 0; rc == 0 && i < change->n_fresh; i++)
        prepare_sink(change, change->fresh[i]);
    if (rc == 0 && change->mistakes > 0)
        rc = -EINVAL;
    if (rc < 0)
        reconfigure_close(change);
    else
        *ret = change;
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

static void count(const struct reconfigure *change, struct reload_result *ret)
{
    *ret = (struct reload_result){.removed = change->roster->n};
    for (int i = 0; i < change->n; i++) {
        const struct entry *entry = &change->entries[i];
        bool had = cameras_find(change->roster, entry->camera->config->name);
        ret->removed -= had;
        ret->kept += entry->kept;
        ret->changed += had && !entry->kept;
        ret->added += !had;
        if (entry->kept)
            count_outputs(entry, ret);
    }
}

void reconfigure_apply(struct reconfigure *change, struct reload_result *ret)
{
    count(change, ret);
    for (int i = 0; i < change->n_fresh; i++)
        hand_over(change->fresh[i], holder_of_address(change, change->fresh[i]));
    for (int i = 0; i < change->n_going; i++)
        if (change->going[i]->sink)
            sink_yield(change->going[i]->sink, NULL);
    for (int i = 0; i < change->n; i++)
        if (change->entries[i].kept && change->entries[i].differs)
            cameras_set_outputs(change->roster, change->entries[i].camera,
                                change->entries[i].subscriptions);
    cameras_set(change->roster, change->cameras, change->n);
    change->cameras = NULL;
    change->applied = true;
    cameras_settle(change->roster);
}

static void drop(const struct entry *entry)
{
    if (!entry->kept) {
        camera_close(entry->camera);
        free(entry->camera);
        return;
    }
    if (entry->differs)
        subscriptions_close(entry->subscriptions, output_close); // those that nobody else has
}

void reconfigure_close(struct reconfigure *change)
{
    if (!change)
        return;
    for (int i = 0; i < change->n && !change->applied; i++)
        drop(&change->entries[i]);
    free(change->cameras);
    free(change->entries);
    free(change->fresh);
    free(change->going);
    free(change);
}
