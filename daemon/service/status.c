#include "daemon/service/status.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "config/expand.h"
#include "daemon/base/clock.h"
#include "daemon/base/machine.h"
#include "daemon/service/status_cluster.h"
#include "daemon/service/status_results.h"

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

json_t *status_process_json(const struct status *status)
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
    const struct output *batch = NULL;
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
                     "process", status_process_json(status), "backend",
                     backend_json(metrics->devices), "devices", load_devices_json(&status->load),
                     "bound", load_bottleneck_json(&status->load, metrics), "unfinished",
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
