#include "daemon/output/output.h"

#include <errno.h>
#include <stdlib.h>

#include "config/object.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/device/budget.h"
#include "daemon/wire.h"

// Makes no line without a reader.
static void write_scene_lines(struct output *output)
{
    const bool keeps = output->config->sink.kind == SINK_FILE;
    const bool has_reader = sink_clients(output->sink) > 0;
    const enum loss reason = output->finished           ? LOSS_STOPPING
                             : keeps || output->refused ? LOSS_SINK
                                                        : LOSS_CLIENT;
    scene_lines_write(output->scene, output->camera, output->config->name, has_reader, reason);
}

static void results_are_ready(struct event *event)
{
    struct output *output = (struct output *)((char *)event - offsetof(struct output, ready));
    if (output->scene)
        write_scene_lines(output);
    sink_pump(output->sink);
}

// Clients of a ring map the pool's memory; with other sinks it is private.
static enum region_kind memory_kind(const struct output_config *config)
{
    if (config->sink.kind != SINK_RING)
        return REGION_PRIVATE;
    return config->memory == RING_CUDA       ? REGION_DEVICE
           : config->memory == RING_CUDA_IPC ? REGION_DEVICE_IPC
                                             : REGION_SHARED;
}

static int open_pool(struct output *output)
{
    const struct output_config *config = output->config;
    const bool has_elements = config->is_batch || config->crops.of;
    const int items = has_elements ? config->capacity : 1;
    struct pool_options options = {
        .n = config->slots,
        .items = items,
        .name = config->name,
        .header_bytes = has_elements && config->sink.kind == SINK_RING
                            ? (size_t)items * sizeof(struct framed_element_header)
                            : 0,
        .kind = memory_kind(config),
        .object = config->shared.name ? &output->shared : NULL,
        .overflow = config->overflow,
        .max_age_ns = config->max_age.ns,
        .undelivered = config->sink.kind == SINK_FILE ? LOSS_SINK : LOSS_CLIENT,
    };
    // Frames wait for a batch (output/batch.h), which follows its members: at most results that
    // slower clients have not read are evicted.
    if (config->is_batch)
        options.overflow = OVERFLOW_DROP_NEWEST;
    int rc = pool_open(&output->pool, &options);
    if (rc < 0 || config->sink.kind != SINK_RING)
        return rc;
    rc = results_open(&output->results, config, output->pool);
    if (rc < 0 || config->detections.sink.kind == SINK_NONE)
        return rc;
    return result_lines_open(&output->lines, config, output->results);
}

static int open_batch(struct output *output)
{
    const struct output_config *config = output->config;
    const struct batch_options options = {
        .pool = output->pool,
        .capacity = config->capacity,
        .per_camera = config->per_camera,
        .fixed = config->order == BATCH_FIXED,
        .fills_tail = config->tail == BATCH_ZERO,
        .wait_ns = config->wait.ns,
    };
    return batch_open(&output->batch, &options);
}

static int open_packets(struct output *output)
{
    struct packet_queue_options options = {
        .before_ns = output->config->before.ns,
        .before_bytes_max = COPY_BEFORE_BYTES,
        .bytes_max = COPY_WAITING_BYTES,
        .waits = output->config->overflow == OVERFLOW_WAIT,
        .eager = output->config->sink.kind == SINK_RTSP,
        .ledger = &output->ledger,
    };
    return packet_queue_open(&output->packets, &options);
}

static int open_source(struct output *output)
{
    const struct output_config *config = output->config;
    if (config->kernel == KERNEL_COPY)
        return open_packets(output);
    if (config->kernel == KERNEL_STATS)
        return scene_lines_open(&output->scene, &output->ledger);
    int rc = open_pool(output);
    if (rc == 0 && config->is_batch)
        rc = open_batch(output);
    if (rc == 0 && config->crops.of)
        rc = crop_requests_open(&output->requests, output->camera, config, &output->ledger);
    return rc;
}

static int join_batch(struct output *output, struct output *parent)
{
    output->pool = parent->pool;
    output->parent = parent;
    output->share.camera = output->camera;
    output->share.ledger = &output->ledger;
    output->share.overflow = output->config->overflow;
    output->share.max_age_ns = output->config->max_age.ns;
    batch_add(parent->batch, &output->share);
    parent->subscribers++;
    return 0;
}

int output_open(struct output **ret, const char *camera, const struct output_config *config,
                struct output *parent)
{
    struct output *output = calloc(1, sizeof *output);
    if (!output)
        return -ENOMEM;
    output->camera = camera;
    output->config = config_copy_output(config);
    output->listener.fd = -1;
    shared_object_init(&output->shared);
    output->ready.callback = results_are_ready;
    output->rate.fps = config->fps;
    int rc = !output->config ? -ENOMEM : parent ? join_batch(output, parent) : open_source(output);
    if (rc < 0)
        output_close(output);
    else
        *ret = output;
    return rc;
}

void output_close(struct output *output)
{
    if (!output)
        return;
    event_cancel(&output->ready);
    if (output->parent) {
        batch_leave(&output->share);
        if (output->parent->results)
            results_forget_camera(output->parent->results, output->camera);
        output->parent->subscribers--;
    } else {
        pool_close(output->pool);
    }
    result_lines_close(output->lines);
    results_close(output->results);
    batch_close(output->batch);
    listener_close(&output->listener);
    packet_queue_close(output->packets);
    scene_lines_close(output->scene);
    crop_requests_close(output->requests);
    config_free_output(output->config);
    free(output);
}

struct output *output_owner(struct output *output)
{
    return output->parent ? output->parent : output;
}

struct sink *output_sink(const struct output *output)
{
    return output->parent ? output->parent->sink : output->sink;
}

static void set_sink(struct output *output, enum pool_sink sink)
{
    if (output->parent)
        return;
    if (output->pool)
        pool_set_sink(output->pool, sink);
    else if (output->packets)
        packet_queue_set_sink(output->packets, sink);
}

enum {
    LINES_GRACE_MS = 100,     // least time for readers of lines after the last result
    OLD_LINES_GRACE_MS = 500, // their time when a reload replaces the lines
};

// Lines end last: clients may have sent results of the last frames until now.
static void sink_was_closed(void *opaque)
{
    struct output *output = opaque;
    const int64_t rest_ms = (output->drained_ns - monotonic_ns()) / 1000000;
    output->sink = NULL;
    if (output->lines)
        result_lines_finish(output->lines,
                            rest_ms > LINES_GRACE_MS ? (int)rest_ms : LINES_GRACE_MS);
    output->closed(output);
}

int output_listen(struct output *output, uv_loop_t *loop, void (*closed)(struct output *),
                  void *owner)
{
    const struct sink_context context = {
        .loop = loop,
        .camera = output->camera,
        .config = output->config,
        .pool = output->pool,
        .results = output->results,
        .packets = output->packets,
        .lines = output->scene ? output->scene->queue : NULL,
        .account = output->scene ? &output->scene->account : NULL,
        .ledger = &output->ledger,
        .last_error = &output->last_error,
        .closed = sink_was_closed,
        .opaque = output,
        .listener = &output->listener,
        .shared = &output->shared,
    };
    output->closed = closed;
    output->owner = owner;
    int rc = sink_try_open(&output->sink, &context, "", &output->refused);
    if (rc == 0 && output->config->overflow_auto && output->config->overflow == OVERFLOW_WAIT)
        sink_event(output->sink, LOG_LEVEL_INFO,
                   "overflow: wait (by auto: the camera is a file read at full pace)");
    set_sink(output, rc < 0 ? POOL_SINK_REFUSED : POOL_SINK_OPEN);
    return rc;
}

// --- lines of what clients found

static void lines_were_closed(struct result_lines *lines, void *opaque)
{
    struct output *output = opaque;
    struct result_lines **link = &output->old_lines;
    while (*link && *link != lines)
        link = &(*link)->next;
    if (*link) {
        *link = lines->next;
        result_lines_close(lines);
    }
    output->closed(output);
}

bool output_wants_lines(const struct output *output)
{
    return output->lines && !output->lines->sink && !output->lines->finished && !output->old_lines;
}

int output_listen_lines(struct output *output, uv_loop_t *loop, void (*closed)(struct output *),
                        void *owner)
{
    output->closed = closed;
    output->owner = owner;
    output->lines->config.group_id = output->config->detections.group_id;
    output->lines->config.has_group_id = output->config->detections.has_group_id;
    return result_lines_listen(output->lines, loop, output->camera, &output->last_error,
                               lines_were_closed, output);
}

int output_set_detections(struct output *output, const struct output_config *config)
{
    struct result_lines *lines = NULL, *before = output->lines;
    if (!output->results || output->finished || detections_equal(output->config, config))
        return 0;
    int rc = 0;
    if (config->detections.sink.kind != SINK_NONE)
        rc = result_lines_open(&lines, config, output->results);
    if (rc == 0)
        rc = detections_copy(output->config, config);
    if (rc < 0) {
        result_lines_close(lines);
        return rc;
    }
    output->lines = lines;
    if (!before)
        return 1;
    result_lines_finish(before, OLD_LINES_GRACE_MS);
    if (before->sink) {
        before->next = output->old_lines;
        output->old_lines = before;
    } else {
        result_lines_close(before);
    }
    return 1;
}

bool output_is_open(const struct output *output)
{
    return output->sink || output->old_lines || (output->lines && output->lines->sink);
}

void output_yield(const struct output *output)
{
    sink_yield(output->sink, NULL);
    if (output->lines)
        sink_yield(output->lines->sink, NULL);
}

void output_check_paths(const struct output *output)
{
    sink_check_path(output->sink);
    if (output->lines && !output->lines->finished)
        sink_check_path(output->lines->sink);
}

// --- the end

void output_finish(struct output *output, int grace_ms)
{
    const int64_t drained_ns = monotonic_ns() + grace_ms * INT64_C(1000000);
    if (!output->finished || drained_ns < output->drained_ns)
        output->drained_ns = drained_ns;
    output->finished = true;
    if (output->batch)
        batch_finish(output->batch);
    if (output->requests)
        crop_requests_follow(output->requests, NULL, NULL);
    if (output->scene) // while the sink takes lines
        write_scene_lines(output);
    if (output->sink)
        sink_finish(output->sink, grace_ms);
    else
        set_sink(output, POOL_SINK_STOPPED);
    if (!output->sink && output->lines && !output->lines->finished)
        result_lines_finish(output->lines, LINES_GRACE_MS);
}

bool output_has_drained(struct output *output)
{
    if (ledger_in_flight(&output->ledger) > 0 && monotonic_ns() >= output->drained_ns)
        pool_forget_ledger(output->pool, &output->ledger);
    return ledger_in_flight(&output->ledger) <= 0;
}

bool output_is_silent(const struct output *output)
{
    const struct output_config *config = output->config;
    return atomic_load(&output->ledger.emitted) == 0 && config->before.ns == 0 && !config->crops.of;
}

static void log_silence(const struct output *output, const char *losses)
{
    const char *name = output->config->name;
    if (output->refused)
        log_event(LOG_LEVEL_ERROR, "output=%s emitted nothing: its sink was never opened: %s", name,
                  output->last_error.text);
    else if (*losses)
        log_event(LOG_LEVEL_ERROR, "output=%s emitted nothing: all was lost,%s", name, losses);
    else
        log_event(LOG_LEVEL_ERROR, "output=%s emitted nothing: the camera gave no picture", name);
}

void output_log_account(const struct output *output, bool fails)
{
    const struct ledger *ledger = &output->ledger;
    const long long in_flight = ledger_in_flight(ledger);
    char losses[256] = "";
    size_t used = 0;
    for (int i = 0; i < LOSSES; i++) {
        unsigned long long n = atomic_load(&ledger->lost[i]);
        if (n && used < sizeof losses)
            used += (size_t)snprintf(losses + used, sizeof losses - used, " %s=%llu",
                                     loss_name((enum loss)i), n);
    }
    log_camera(output->camera);
    log_event(LOG_LEVEL_INFO, "output=%s offered=%llu emitted=%llu lost=%llu%s",
              output->config->name, (unsigned long long)atomic_load(&ledger->offered),
              (unsigned long long)atomic_load(&ledger->emitted),
              (unsigned long long)ledger_lost(ledger), losses);
    if (in_flight != 0)
        log_event(LOG_LEVEL_WARNING, "output=%s %lld frames %s", output->config->name,
                  in_flight < 0 ? -in_flight : in_flight,
                  in_flight < 0 ? "were counted twice" : "are unaccounted for");
    if (fails)
        log_silence(output, losses);
    log_camera(NULL);
}
