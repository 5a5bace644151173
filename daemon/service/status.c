#include "daemon/service/status.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/expand.h"
#include "daemon/alert/judge.h"
#include "daemon/base/clock.h"
#include "daemon/base/machine.h"

enum { WINDOW_SAMPLES = 10 }; // quantiles cover the last ten to twenty seconds

void status_open(struct status *status)
{
    *status = (struct status){.started_ns = monotonic_ns()};
}

void status_sample(struct status *status, const struct metrics *metrics)
{
    int64_t now = monotonic_ns();
    bool turn = status->samples++ % WINDOW_SAMPLES == 0;
    load_sample(&status->load, metrics, now);
    for (int i = 0; i < metrics->n_cameras; i++)
        status_camera_sample(metrics->cameras[i], now, turn);
    status_results_sample(metrics, turn);
}

static json_t *process_json(const struct status *status)
{
    return json_pack("{s:i, s:f, s:f, s:I}", "pid", (int)getpid(), "cpu_cores",
                     rate_counter_rate(&status->load.own) / 1e9, "cpu_cores_allowed",
                     processor_time_limit(), "resident_bytes", (json_int_t)resident_bytes());
}

// Describes how many of several GPUs work, else the working device.
static json_t *backend_json(struct devices *devices)
{
    struct device_status status[DEVICES_MAX];
    const int n = devices_status(devices, status);
    char description[sizeof status[0].description];
    int first = 0, work = 0;
    while (first < n - 1 && !status[first].works)
        first++;
    for (int i = 0; i < n - 1; i++)
        work += status[i].works;
    snprintf(description, sizeof description, "%s", status[first].description);
    if (n > 2 && work > 0)
        snprintf(description, sizeof description, "%d of %d GPUs work", work, n - 1);
    return json_pack("{s:s, s:s, s:I}", "name", devices_backend_name(devices), "description",
                     description, "fallbacks", (json_int_t)devices_fallbacks(devices));
}

static json_int_t unix_seconds(int64_t ns)
{
    return ns / 1000000000;
}

static json_t *last_reload_json(const struct reload *reload)
{
    if (!reload->tried_ns)
        return json_null();
    return json_pack("{s:I, s:b, s:o}", "at", unix_seconds(reload->tried_ns), "ok",
                     reload->is_applied, "error",
                     reload->is_applied ? json_null() : status_string(reload->error));
}

static json_t *config_json(const struct reload *reload)
{
    return json_pack("{s:o, s:I, s:o}", "path", status_string(reload->file ? reload->file : ""),
                     "loaded_at", unix_seconds(reload->loaded_ns), "last_reload",
                     last_reload_json(reload));
}

// Lists all cameras, or only the requested one.
static json_t *cameras_json(const struct metrics *metrics)
{
    json_t *list = json_array();
    int64_t now = monotonic_ns();
    for (int i = 0; list && i < metrics->n_cameras; i++) {
        if (!metrics_wants_camera(metrics, metrics->cameras[i]))
            continue;
        if (json_array_append_new(list, status_camera_json(metrics->cameras[i], now)) < 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static json_t *batches_json(const struct metrics *metrics)
{
    json_t *list = json_array();
    const int64_t now = monotonic_ns();
    const struct outlet *batch = NULL;
    while (list && (batch = metrics_next_batch(metrics, batch)))
        if (json_array_append_new(list, status_batch_json(batch, now)) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static json_t *unfinished_file_json(const struct unfinished_file *file)
{
    const int64_t age = realtime_ns() - file->modified_ns;
    char path[2 * PATH_MAX];
    expand_hide(path, sizeof path, file->path, false);
    return json_pack("{s:o, s:I, s:f}", "path", status_string(path), "bytes",
                     (json_int_t)file->bytes, "age_s", (double)(age > 0 ? age : 0) / 1e9);
}

static json_t *unfinished_json(const struct unfinished_files *files)
{
    if (!files)
        return json_null();
    json_t *list = json_array();
    for (int i = 0; i < files->n; i++)
        json_array_append_new(list, unfinished_file_json(&files->file[i]));
    return json_pack("{s:I, s:I, s:o}", "count", (json_int_t)files->count, "bytes",
                     (json_int_t)files->bytes, "files", list);
}

static json_t *status_json(const struct status *status, const struct metrics *metrics)
{
    double uptime = (double)(monotonic_ns() - status->started_ns) / 1e9;
    return json_pack("{s:i, s:s, s:I, s:f, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o*}",
                     "schema_version", STATUS_SCHEMA_VERSION, "version", FRAMED_VERSION_TEXT,
                     "time_ms", (json_int_t)(realtime_ns() / 1000000), "uptime_s", uptime,
                     "http_write", metrics->http_write, "config", config_json(metrics->reload),
                     "process", process_json(status), "backend", backend_json(metrics->devices),
                     "devices", load_devices_json(&status->load), "bound",
                     load_bottleneck_json(&status->load, metrics), "unfinished",
                     unfinished_json(metrics->unfinished), "batches", batches_json(metrics),
                     "cameras", cameras_json(metrics), "cluster", status_cluster_json(metrics));
}

// Frees `json`.
static char *text_of(json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(json);
    return text;
}

char *status_text(const struct status *status, const struct metrics *metrics)
{
    return text_of(status_json(status, metrics));
}

char *status_cameras_text(const struct metrics *metrics)
{
    return text_of(json_pack("{s:i, s:o}", "schema_version", STATUS_SCHEMA_VERSION, "cameras",
                             cameras_json(metrics)));
}

static const int64_t RECENT_NS = 60 * INT64_C(1000000000); // how long an output's error is shown

// --- the summary, printed directly: a tree of objects for each camera takes five times as long

// Frees `json`.
static void print_json(FILE *to, json_t *json)
{
    if (!json || json_dumpf(json, to, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) < 0)
        fputs("null", to);
    json_decref(json);
}

static void print_text(FILE *to, const char *key, const char *text)
{
    fprintf(to, ",\"%s\":", key);
    print_json(to, status_string(text));
}

// A tile's summary of the camera's outputs.
struct outputs_summary {
    double fps_out;
    int64_t p99_ns, max_age_ns; // -1, 0: unknown
    const char *error;          // NULL: none
};

static void add_output(struct outputs_summary *summary, const struct output *output, int64_t now)
{
    const int64_t p99_ns = latency_quantile_ns(&output->recent, &output->latency, 0.99);
    const int64_t max_age_ns = output->config->max_age.ns;
    const struct last_error *error = &output->outlet->last_error; // of a share: the batch shows it
    summary->fps_out = fmax(summary->fps_out, rate_counter_rate(&output->emitted));
    if (p99_ns > summary->p99_ns)
        summary->p99_ns = p99_ns;
    if (max_age_ns > 0 && (!summary->max_age_ns || max_age_ns < summary->max_age_ns))
        summary->max_age_ns = max_age_ns;
    if (!output->parent && error->text[0] && now - error->ns < RECENT_NS)
        summary->error = error->text;
}

static void print_outputs(FILE *to, const struct camera *camera, int64_t now)
{
    struct outputs_summary summary = {.p99_ns = -1};
    for (int i = 0; i < camera->subscriptions->n; i++)
        add_output(&summary, camera->subscriptions->list[i].output, now);
    fprintf(to, ",\"fps_out\":%.2f", summary.fps_out);
    if (summary.p99_ns >= 0)
        fprintf(to, ",\"p99_s\":%.4f", (double)summary.p99_ns / 1e9);
    if (summary.max_age_ns > 0)
        fprintf(to, ",\"max_age_s\":%.3f", (double)summary.max_age_ns / 1e9);
    if (summary.error)
        print_text(to, "output_error", summary.error);
}

static void print_alerts(FILE *to, unsigned alerts)
{
    const char *between = ",\"alerts\":[";
    for (int i = 0; i < ALERT_KINDS; i++) {
        if (!(alerts >> i & 1))
            continue;
        fprintf(to, "%s\"%s\"", between, alert_kind_name((enum alert_kind)i));
        between = ",";
    }
    if (alerts)
        fputc(']', to);
}

static void print_camera(FILE *to, const struct camera *camera, int64_t now)
{
    const struct camera_report *report = &camera->report;
    const struct camera_description description = camera_report_describe(report);
    const int state = atomic_load(&report->state);
    const int64_t wait_ns = atomic_load(&report->next_try_ns) - now;
    fprintf(to, "{\"name\":\"%s\",\"state\":\"%s\",\"fps_in\":%.2f,\"damaged\":%llu",
            camera->config->name, camera_state_name(state), rate_counter_rate(&camera->pictures),
            (unsigned long long)atomic_load(&report->flagged[COUNTED_DAMAGED]));
    if (state == CAMERA_RETRYING)
        fprintf(to, ",\"next_try_s\":%.3f", wait_ns > 0 ? (double)wait_ns / 1e9 : 0);
    if (state != CAMERA_RUNNING && description.last_error.text[0])
        print_text(to, "error", description.last_error.text);
    if (description.stream[0])
        print_text(to, "stream", description.stream);
    print_alerts(to, camera->alerts);
    print_outputs(to, camera, now);
    fputc('}', to);
}

char *status_summary_text(const struct status *status, const struct metrics *metrics)
{
    const int64_t now = monotonic_ns();
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        return NULL;
    fprintf(to, "{\"time_ms\":%lld,\"http_write\":%s,\"process\":",
            (long long)(realtime_ns() / 1000000), metrics->http_write ? "true" : "false");
    print_json(to, process_json(status));
    fputs(",\"devices\":", to);
    print_json(to, load_devices_json(&status->load));
    fputs(",\"bound\":", to);
    print_json(to, load_bottleneck_json(&status->load, metrics));
    if (metrics->member) {
        fputs(",\"cluster\":", to);
        print_json(to, status_cluster_json(metrics));
    }
    fputs(",\"cameras\":[", to);
    for (int i = 0; i < metrics->n_cameras; i++) {
        if (i > 0)
            fputc(',', to);
        print_camera(to, metrics->cameras[i], now);
    }
    fputs("]}", to);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}
