#include "daemon/service/status_summary.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/alert/judge.h"
#include "daemon/base/clock.h"
#include "daemon/service/status.h"
#include "daemon/service/status_cluster.h"

static const int64_t RECENT_NS = 60 * INT64_C(1000000000); // how long an output's error is shown

// --- printed directly: a tree of objects for each camera takes five times as long

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
    const struct last_error *error = &output->last_error;
    summary->fps_out = fmax(summary->fps_out, rate_counter_rate(&output->emitted));
    if (p99_ns > summary->p99_ns)
        summary->p99_ns = p99_ns;
    if (max_age_ns > 0 && (!summary->max_age_ns || max_age_ns < summary->max_age_ns))
        summary->max_age_ns = max_age_ns;
    if (error->text[0] && now - error->ns < RECENT_NS)
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
    print_json(to, status_process_json(status));
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
