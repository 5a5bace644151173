#include "daemon/output/output.h"

#include <errno.h>
#include <stdlib.h>

#include "config/object.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/device/budget.h"
#include "daemon/wire.h"

// Makes no line without a reader.
static void write_scene_lines(struct outlet *outlet)
{
    const bool keeps = outlet->config->sink.kind == SINK_FILE;
    const bool has_reader = sink_clients(outlet->sink) > 0;
    const enum loss reason = outlet->finished           ? LOSS_STOPPING
                             : keeps || outlet->refused ? LOSS_SINK
                                                        : LOSS_CLIENT;
    scene_lines_write(outlet->scene, outlet->camera, outlet->config->name, has_reader, reason);
}

static void results_are_ready(struct event *event)
{
    struct outlet *outlet = (struct outlet *)((char *)event - offsetof(struct outlet, ready));
    if (outlet->scene)
        write_scene_lines(outlet);
    sink_pump(outlet->sink);
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

static int open_pool(struct outlet *outlet)
{
    const struct output_config *config = outlet->config;
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
        .object = config->shared.name ? &outlet->shared : NULL,
        .overflow = config->overflow,
        .max_age_ns = config->max_age.ns,
        .undelivered = config->sink.kind == SINK_FILE ? LOSS_SINK : LOSS_CLIENT,
    };
    // Frames wait for a batch (output/batch.h), which follows its members: at most results that
    // slower clients have not read are evicted.
    if (config->is_batch)
        options.overflow = OVERFLOW_DROP_NEWEST;
    int rc = pool_open(&outlet->pool, &options);
    if (rc < 0 || config->sink.kind != SINK_RING)
        return rc;
    rc = results_open(&outlet->results, config, outlet->pool);
    if (rc < 0 || config->detections.sink.kind == SINK_NONE)
        return rc;
    return result_lines_open(&outlet->lines, config, outlet->results);
}

static int open_batch(struct outlet *outlet)
{
    const struct output_config *config = outlet->config;
    const struct batch_options options = {
        .pool = outlet->pool,
        .capacity = config->capacity,
        .per_camera = config->per_camera,
        .fixed = config->order == BATCH_FIXED,
        .fills_tail = config->tail == BATCH_ZERO,
        .wait_ns = config->wait.ns,
    };
    return batch_open(&outlet->batch, &options);
}

static int open_packets(struct outlet *outlet)
{
    struct packet_queue_options options = {
        .before_ns = outlet->config->before.ns,
        .before_bytes_max = COPY_BEFORE_BYTES,
        .bytes_max = COPY_WAITING_BYTES,
        .waits = outlet->config->overflow == OVERFLOW_WAIT,
        .eager = outlet->config->sink.kind == SINK_RTSP,
        .ledger = outlet->ledger,
    };
    return packet_queue_open(&outlet->packets, &options);
}

static int open_source(struct outlet *outlet)
{
    const struct output_config *config = outlet->config;
    if (config->kernel == KERNEL_COPY)
        return open_packets(outlet);
    if (config->kernel == KERNEL_STATS)
        return scene_lines_open(&outlet->scene, outlet->ledger);
    int rc = open_pool(outlet);
    return rc == 0 && config->is_batch ? open_batch(outlet) : rc;
}

int outlet_open(struct outlet **ret, const char *camera, const struct output_config *config,
                struct ledger *ledger)
{
    struct outlet *outlet = calloc(1, sizeof *outlet);
    if (!outlet)
        return -ENOMEM;
    outlet->camera = camera;
    outlet->config = config_copy_output(config);
    outlet->ledger = ledger;
    outlet->listener.fd = -1;
    shared_object_init(&outlet->shared);
    outlet->ready.callback = results_are_ready;
    int rc = outlet->config ? open_source(outlet) : -ENOMEM;
    if (rc < 0)
        outlet_close(outlet);
    else
        *ret = outlet;
    return rc;
}

void outlet_close(struct outlet *outlet)
{
    if (!outlet)
        return;
    batch_close(outlet->batch);
    event_cancel(&outlet->ready);
    pool_close(outlet->pool);
    result_lines_close(outlet->lines);
    results_close(outlet->results);
    listener_close(&outlet->listener);
    packet_queue_close(outlet->packets);
    scene_lines_close(outlet->scene);
    config_free_output(outlet->config);
    free(outlet);
}

static void set_sink(struct outlet *outlet, enum pool_sink sink)
{
    if (outlet->pool)
        pool_set_sink(outlet->pool, sink);
    else if (outlet->packets)
        packet_queue_set_sink(outlet->packets, sink);
}

enum {
    LINES_GRACE_MS = 100,     // least time for readers of lines after the last result
    OLD_LINES_GRACE_MS = 500, // their time when a reload replaces the lines
};

// Lines end last: clients may have sent results of the last frames until now.
static void sink_was_closed(void *opaque)
{
    struct outlet *outlet = opaque;
    const int64_t rest_ms = (outlet->drained_ns - monotonic_ns()) / 1000000;
    outlet->sink = NULL;
    if (outlet->lines)
        result_lines_finish(outlet->lines,
                            rest_ms > LINES_GRACE_MS ? (int)rest_ms : LINES_GRACE_MS);
    outlet->closed(outlet);
}

int outlet_listen(struct outlet *outlet, uv_loop_t *loop)
{
    const struct sink_context context = {
        .loop = loop,
        .camera = outlet->camera,
        .config = outlet->config,
        .pool = outlet->pool,
        .results = outlet->results,
        .packets = outlet->packets,
        .lines = outlet->scene ? outlet->scene->queue : NULL,
        .account = outlet->scene ? &outlet->scene->account : NULL,
        .ledger = outlet->ledger,
        .last_error = &outlet->last_error,
        .closed = sink_was_closed,
        .opaque = outlet,
        .listener = &outlet->listener,
        .shared = &outlet->shared,
    };
    int rc = sink_try_open(&outlet->sink, &context, "", &outlet->refused);
    if (rc == 0 && outlet->config->overflow_auto && outlet->config->overflow == OVERFLOW_WAIT)
        sink_event(outlet->sink, LOG_LEVEL_INFO,
                   "overflow: wait (by auto: the camera is a file read at full pace)");
    set_sink(outlet, rc < 0 ? POOL_SINK_REFUSED : POOL_SINK_OPEN);
    return rc;
}

// --- lines of what clients found

static void lines_were_closed(struct result_lines *lines, void *opaque)
{
    struct outlet *outlet = opaque;
    if (lines != outlet->lines) {
        outlet->old_lines--;
        result_lines_close(lines);
    }
    outlet->closed(outlet);
}

bool outlet_wants_lines(const struct outlet *outlet)
{
    return outlet->lines && !outlet->lines->sink && !outlet->lines->finished &&
           outlet->old_lines == 0;
}

int outlet_listen_lines(struct outlet *outlet, uv_loop_t *loop)
{
    outlet->lines->config.group_id = outlet->config->detections.group_id;
    outlet->lines->config.has_group_id = outlet->config->detections.has_group_id;
    return result_lines_listen(outlet->lines, loop, outlet->camera, &outlet->last_error,
                               lines_were_closed, outlet);
}

int outlet_set_detections(struct outlet *outlet, const struct output_config *config)
{
    struct result_lines *lines = NULL, *before = outlet->lines;
    if (!outlet->results || outlet->finished || detections_equal(outlet->config, config))
        return 0;
    int rc = 0;
    if (config->detections.sink.kind != SINK_NONE)
        rc = result_lines_open(&lines, config, outlet->results);
    if (rc == 0)
        rc = detections_copy(outlet->config, config);
    if (rc < 0) {
        result_lines_close(lines);
        return rc;
    }
    outlet->lines = lines;
    if (before)
        result_lines_finish(before, OLD_LINES_GRACE_MS);
    if (before && before->sink)
        outlet->old_lines++;
    else
        result_lines_close(before);
    return 1;
}

bool outlet_is_open(const struct outlet *outlet)
{
    return outlet->sink || outlet->old_lines > 0 || (outlet->lines && outlet->lines->sink);
}

void outlet_yield(const struct outlet *outlet)
{
    sink_yield(outlet->sink, NULL);
    if (outlet->lines)
        sink_yield(outlet->lines->sink, NULL);
}

void outlet_check_paths(const struct outlet *outlet)
{
    sink_check_path(outlet->sink);
    if (outlet->lines && !outlet->lines->finished)
        sink_check_path(outlet->lines->sink);
}

// Sets the end of the time to take ready results, unless it is earlier already.
static void shorten(int64_t *drained_ns, int grace_ms)
{
    const int64_t ns = monotonic_ns() + grace_ms * INT64_C(1000000);
    if (*drained_ns == 0 || ns < *drained_ns)
        *drained_ns = ns;
}

void outlet_finish(struct outlet *outlet, int grace_ms)
{
    shorten(&outlet->drained_ns, grace_ms);
    outlet->finished = true;
    if (outlet->scene) // while the sink takes lines
        write_scene_lines(outlet);
    if (outlet->sink)
        sink_finish(outlet->sink, grace_ms);
    else
        set_sink(outlet, POOL_SINK_STOPPED);
    if (!outlet->sink && outlet->lines && !outlet->lines->finished)
        result_lines_finish(outlet->lines, LINES_GRACE_MS);
}

// --- outputs

static int open_share(struct output *output, const struct output_config *config,
                      struct outlet *batch)
{
    output->config = config_copy_output(config);
    if (!output->config)
        return -ENOMEM;
    output->outlet = output->parent = batch;
    output->share = (struct batch_member){
        .camera = output->camera,
        .ledger = &output->ledger,
        .overflow = config->overflow,
        .max_age_ns = config->max_age.ns,
    };
    batch_add(batch->batch, &output->share);
    batch->shares++;
    return 0;
}

static int open_own_outlet(struct output *output, const struct output_config *config)
{
    int rc = outlet_open(&output->outlet, output->camera, config, &output->ledger);
    if (rc < 0)
        return rc;
    output->config = output->outlet->config;
    if (config->crops.of)
        rc = crop_requests_open(&output->requests, output->camera, output->config, &output->ledger);
    return rc;
}

int output_open(struct output **ret, const char *camera, const struct output_config *config,
                struct outlet *batch)
{
    struct output *output = calloc(1, sizeof *output);
    if (!output)
        return -ENOMEM;
    output->camera = camera;
    output->rate.fps = config->fps;
    int rc = batch ? open_share(output, config, batch) : open_own_outlet(output, config);
    if (rc < 0) {
        output_close(output);
        return rc;
    }
    output->pool = output->outlet->pool;
    *ret = output;
    return 0;
}

void output_close(struct output *output)
{
    if (!output)
        return;
    crop_requests_close(output->requests);
    if (output->parent) {
        batch_leave(&output->share);
        if (output->parent->results)
            results_forget_camera(output->parent->results, output->camera);
        output->parent->shares--;
        config_free_output(output->config);
    } else {
        outlet_close(output->outlet);
    }
    free(output);
}

void output_finish(struct output *output, int grace_ms)
{
    shorten(&output->drained_ns, grace_ms);
    if (output->requests)
        crop_requests_follow(output->requests, NULL, NULL);
    if (!output->parent)
        outlet_finish(output->outlet, grace_ms);
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
    if (output->outlet->refused)
        log_event(LOG_LEVEL_ERROR, "output=%s emitted nothing: its sink was never opened: %s", name,
                  output->outlet->last_error.text);
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
