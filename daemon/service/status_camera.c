#include "daemon/service/status.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "config/object.h"
#include "config/schema.h"
#include "config/url.h"
#include "daemon/alert/judge.h"
#include "daemon/output/lines.h"

enum { URL_MAX = 512 };

// --- samples

static void sample_output(struct output *output, int64_t now, bool turn)
{
    rate_counter_sample(&output->emitted, atomic_load(&output->ledger.emitted), now);
    rate_counter_sample(&output->lost, ledger_lost(&output->ledger), now);
    rate_counter_sample(&output->overflowed, atomic_load(&output->ledger.lost[LOSS_OVERFLOW]), now);
    if (turn)
        latency_turn(&output->recent, &output->latency);
}

void status_camera_sample(struct camera *camera, int64_t now, bool turn)
{
    const struct camera_report *report = &camera->report;
    rate_counter_sample(&camera->pictures, atomic_load(&report->pictures), now);
    rate_counter_sample(&camera->bytes, atomic_load(&report->bytes), now);
    for (int i = 0; i < STAGES; i++)
        rate_counter_sample(&camera->spent[i], atomic_load(&report->stages.spent_ns[i]), now);
    for (int i = 0; i < camera->subscriptions->n; i++)
        sample_output(camera->subscriptions->list[i].output, now, turn);
}

static void sample_results(void *opaque, struct outlet *outlet)
{
    const bool *turn = opaque;
    if (*turn)
        latency_turn(&outlet->results->recent, &outlet->results->latency);
}

void status_results_sample(const struct metrics *metrics, bool turn)
{
    metrics_each_results(metrics, sample_results, &turn);
}

// --- values

json_t *status_string(const char *text)
{
    json_t *json = json_string(text);
    char *copy = json ? NULL : strdup(text);
    if (!copy)
        return json;
    for (char *c = copy; *c; c++)
        *c = *c & 0x80 ? '?' : *c;
    json = json_string(copy);
    free(copy);
    return json;
}

json_t *status_string_or_null(const char *text)
{
    return *text ? status_string(text) : json_null();
}

static json_t *seconds(int64_t ns)
{
    return ns >= 0 ? json_real((double)ns / 1e9) : json_null();
}

// --- results that clients of rings sent back

static json_t *counts_json(const char *const names[], const uint64_t counts[], int n)
{
    json_t *json = json_object();
    for (int i = 0; json && i < n; i++)
        json_object_set_new(json, names[i], json_integer((json_int_t)counts[i]));
    return json;
}

static json_t *result_cameras_json(const struct results *results, int64_t now)
{
    json_t *list = json_array();
    for (int i = 0; list && i < results->n_last_found; i++) {
        const struct last_found *last = &results->last_found[i];
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:I, s:o, s:i}", "name", last->camera, "results",
                            (json_int_t)last->results, "objects", (json_int_t)last->objects, "late",
                            (json_int_t)last->late, "age_s", seconds(now - last->result_ns),
                            "objects_last", last->n));
    }
    return list;
}

static json_t *result_latency_json(const struct results *results)
{
    return json_pack("{s:o, s:o}", "p50_s",
                     seconds(latency_quantile_ns(&results->recent, &results->latency, 0.5)),
                     "p99_s",
                     seconds(latency_quantile_ns(&results->recent, &results->latency, 0.99)));
}

static json_t *account_json(const struct line_account *account)
{
    return json_pack("{s:I, s:I, s:I}", "offered", (json_int_t)account->offered, "delivered",
                     (json_int_t)account->delivered, "lost", (json_int_t)account->lost);
}

// A line is made only for a reader, so readers are counted beside their losses.
static json_t *result_lines_json(const struct result_lines *lines,
                                 const struct line_account *account)
{
    json_t *json = lines ? account_json(account) : json_null();
    if (lines && json) {
        json_object_set_new(json, "open", json_boolean(lines->sink != NULL));
        json_object_set_new(json, "clients", json_integer(sink_clients(lines->sink)));
    }
    return json;
}

static json_t *results_json(const struct outlet *outlet, int64_t now)
{
    const struct results *results = outlet->results;
    if (!results || !results->counts)
        return json_null();
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "lent", (json_int_t)results->lent,
        "unanswered", (json_int_t)(results->lent - results->results), "results",
        (json_int_t)results->results, "objects", (json_int_t)results->objects, "late",
        (json_int_t)results->late, "wrong",
        counts_json(result_wrong_names, results->wrong, RESULT_WRONGS), "dropped",
        counts_json(object_drop_names, results->dropped, OBJECT_DROPS), "latency",
        result_latency_json(results), "lines", result_lines_json(outlet->lines, &results->lines),
        "cameras", result_cameras_json(results, now));
}

// --- outputs

static json_t *last_error_json(const struct last_error *error, int64_t now)
{
    if (!error->text[0])
        return json_null();
    return json_pack("{s:o, s:o}", "text", status_string(error->text), "age_s",
                     seconds(now > error->ns ? now - error->ns : 0));
}

// The address of a tcp sink is no secret: anybody who reaches the machine can find it, and a reader
// needs it.
json_t *status_sink_json(const struct outlet *outlet)
{
    const struct sink_address *address = &outlet->config->sink;
    const char *written = object_written(&output_table, outlet->config, "sink");
    const char *host = address_host(address);
    const bool brackets = strchr(host, ':');
    const struct sink *sink = outlet->sink;
    const int port = sink ? sink_port(sink) : address->port;
    char text[PATH_MAX + 16];
    if (address->url)
        config_sink_url(outlet->config, text, sizeof text);
    else if (address->kind == SINK_TCP)
        snprintf(text, sizeof text, "tcp:%s%s%s:%d", brackets ? "[" : "", host, brackets ? "]" : "",
                 port);
    else if (written)
        snprintf(text, sizeof text, "%s", written);
    else
        snprintf(text, sizeof text, "%s%s", address_scheme(address->kind),
                 address->path ? address->path : "");
    return status_string(text);
}

static const char *choice_name(const char *key, int value)
{
    return row_choice(table_find(&output_table, key), value);
}

static json_t *losses_json(const struct ledger *ledger)
{
    json_t *losses = json_object();
    for (int i = 0; losses && i < LOSSES; i++)
        json_object_set_new(losses, loss_name((enum loss)i),
                            json_integer((json_int_t)atomic_load(&ledger->lost[i])));
    return losses;
}

static json_t *latency_json(const struct output *output)
{
    return json_pack("{s:o, s:o}", "p50_s",
                     seconds(latency_quantile_ns(&output->recent, &output->latency, 0.5)), "p99_s",
                     seconds(latency_quantile_ns(&output->recent, &output->latency, 0.99)));
}

static json_t *client_json(const struct sink_client *client)
{
    const struct consumer_report *report = &client->report;
    return json_pack("{s:o, s:i, s:i, s:I, s:I}", "name", status_string(client->name), "behind",
                     report->behind, "held", report->held, "taken", (json_int_t)report->taken,
                     "missed", (json_int_t)report->missed);
}

// Lists the clients with a name.
static json_t *consumers_json(const struct sink *sink)
{
    json_t *list = json_array();
    for (int i = 0; list && i < sink_clients(sink); i++) {
        const struct sink_client client = sink_client(sink, i);
        if (client.name)
            json_array_append_new(list, client_json(&client));
    }
    return list;
}

static json_t *lines_json(const struct outlet *outlet)
{
    return outlet->scene ? account_json(&outlet->scene->account) : json_null();
}

// What clients found and the errors of a batch are shown with it, not with its shares.
static json_t *output_json(const struct output *output, int64_t now)
{
    const struct outlet *outlet = output->outlet;
    const bool owns = !output->parent;
    // Offered is read last, so that the parts never exceed it.
    json_t *losses = losses_json(&output->ledger);
    json_int_t emitted = (json_int_t)atomic_load(&output->ledger.emitted);
    json_int_t offered = (json_int_t)atomic_load(&output->ledger.offered);
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:b, s:i, s:o, s:I, s:I, s:o, s:f, s:f, s:o, s:o, s:o, s:o}", "name",
        output->config->name, "kernel", choice_name("kernel", (int)output->config->kernel),
        "protocol", choice_name("protocol", (int)output->config->protocol), "sink",
        status_sink_json(outlet), "open", outlet->sink != NULL, "clients",
        sink_clients(outlet->sink), "consumers", consumers_json(outlet->sink), "offered", offered,
        "emitted", emitted, "lost", losses, "fps_out", rate_counter_rate(&output->emitted),
        "fps_lost", rate_counter_rate(&output->lost), "latency", latency_json(output), "lines",
        lines_json(outlet), "results", owns ? results_json(outlet, now) : json_null(), "last_error",
        owns ? last_error_json(&outlet->last_error, now) : json_null());
}

static json_t *outputs_json(const struct subscriptions *outputs, int64_t now)
{
    json_t *list = json_array();
    for (int i = 0; list && i < outputs->n; i++)
        if (json_array_append_new(list, output_json(outputs->list[i].output, now)) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

// --- batches

json_t *status_batch_json(const struct outlet *outlet, int64_t now)
{
    const struct batch *batch = outlet->batch;
    const double elements = (double)atomic_load(&batch->elements);
    uint64_t count = 0;
    json_t *closed = json_object();
    for (int i = CLOSED_FULL; closed && i <= CLOSED_STOPPING; i++) {
        const uint64_t n = atomic_load(&batch->closed[i]);
        count += n;
        json_object_set_new(closed, batch_close_name((enum batch_close)i),
                            json_integer((json_int_t)n));
    }
    return json_pack("{s:s, s:o, s:b, s:i, s:o, s:i, s:o, s:o, s:o, s:o}", "name",
                     outlet->config->name, "sink", status_sink_json(outlet), "open",
                     outlet->sink != NULL, "clients", sink_clients(outlet->sink), "consumers",
                     consumers_json(outlet->sink), "capacity", outlet->config->capacity,
                     "elements_mean", count > 0 ? json_real(elements / (double)count) : json_null(),
                     "closed", closed, "results", results_json(outlet, now), "last_error",
                     last_error_json(&outlet->last_error, now));
}

// --- analyses of pictures

static json_t *alarms_json(unsigned alarms)
{
    json_t *list = json_array();
    for (int i = 0; i < ALARMS; i++)
        if (alarms >> i & 1)
            json_array_append_new(list, json_string(alarm_name((enum alarm)i)));
    return list;
}

static json_t *scene_json(struct camera *camera, int64_t now)
{
    struct scene_report *report = &camera->report.scene;
    struct scene_record record;
    if (!scene_report_last(report, &record))
        return json_null();
    const double pixels = record.luma.pixels;
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:b, s:o}", "analysed",
                     (json_int_t)atomic_load(&report->analysed), "moved",
                     (json_int_t)atomic_load(&report->moving), "age_s",
                     (double)(now - record.info.received_ns) / 1e9, "mean",
                     (double)record.luma.sum / pixels, "sharpness",
                     (double)record.luma.laplacian / pixels, "moving", record.info.scene.moving,
                     "alarms", alarms_json(record.alarms));
}

char *status_scenes_text(const struct metrics *metrics)
{
    static const char *const separators[] = {"", ","};
    char line[SCENE_LINE_BYTES_MAX], *text = NULL;
    size_t bytes;
    bool any = false;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        return NULL;
    fputs("{\"scenes\":[", to);
    for (int i = 0; i < metrics->n_cameras; i++) {
        struct camera *camera = metrics->cameras[i];
        struct scene_record record;
        if (!metrics_wants_camera(metrics, camera) ||
            !scene_report_last(&camera->report.scene, &record))
            continue;
        const size_t n = scene_line(line, camera->config->name, NULL, 0, &record);
        fprintf(to, "%s%.*s", separators[any], (int)n - 1, line);
        any = true;
    }
    fputs("]}\n", to);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

// --- cameras

static json_t *next_try(struct camera *camera, int state, int64_t now)
{
    if (state != CAMERA_RETRYING)
        return json_null();
    int64_t ns = atomic_load(&camera->report.next_try_ns) - now;
    return seconds(ns > 0 ? ns : 0);
}

static json_t *picture_json(const struct stream_memory *picture)
{
    if (!picture->width)
        return json_null();
    return json_pack("{s:i, s:i}", "width", picture->width, "height", picture->height);
}

static json_t *keyframe_json(const struct camera_report *report)
{
    const int64_t ns = atomic_load(&report->keyframe_ns);
    return seconds(ns > 0 ? ns : -1);
}

static json_t *clock_json(const struct camera_report *report)
{
    if (!atomic_load(&report->has_clock))
        return json_null();
    return json_pack("{s:f, s:f}", "offset_s", (double)atomic_load(&report->offset_ns) / 1e9,
                     "jitter_s", (double)atomic_load(&report->jitter_ns) / 1e9);
}

static json_t *flagged_json(const struct camera_report *report)
{
    json_t *flagged = json_object();
    for (int i = 0; flagged && i < COUNTED_FLAGS; i++)
        json_object_set_new(flagged, counted_flag_name((enum counted_flag)i),
                            json_integer((json_int_t)atomic_load(&report->flagged[i])));
    return flagged;
}

// Null if libavformat reads the input.
static json_t *network_json(const struct demux_network *network)
{
    if (!network->transport)
        return json_null();
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "transport",
                     network->transport, "picture_end", network->picture_end, "packets",
                     (json_int_t)network->packets, "lost", (json_int_t)network->lost, "reordered",
                     (json_int_t)network->reordered, "late", (json_int_t)network->late, "duplicate",
                     (json_int_t)network->duplicate, "foreign", (json_int_t)network->foreign,
                     "restarts", (json_int_t)network->restarts, "overruns",
                     (json_int_t)network->overruns, "arrival_s", seconds(network->arrival_ns));
}

static const char *decodes_name(const struct camera_report *report)
{
    static const char *const names[] = {[PICTURES_AUTO] = NULL,
                                        [PICTURES_ALL] = "all",
                                        [PICTURES_REFERENCE] = "reference",
                                        [PICTURES_KEYFRAMES] = "keyframes"};
    return names[atomic_load(&report->decodes)];
}

static json_t *shares_json(const struct camera *camera, int64_t now)
{
    return json_pack("{s:f, s:f, s:f}", "read", load_camera_share(camera, STAGE_READ, now),
                     "decode", load_camera_share(camera, STAGE_DECODE, now), "submit",
                     load_camera_share(camera, STAGE_SUBMIT, now));
}

static json_t *share_json(double share)
{
    return share >= 0 ? json_real(share) : json_null();
}

static json_t *availability_json(const struct availability_share *availability)
{
    json_t *days = json_array();
    if (availability->known_s == 0) {
        json_decref(days);
        return json_null();
    }
    for (int i = 0; days && i < AVAILABILITY_DAYS; i++)
        json_array_append_new(days, share_json(availability->day[i]));
    return json_pack("{s:o, s:I, s:o}", "share", share_json(availability->share), "known_s",
                     (json_int_t)availability->known_s, "days", days);
}

static json_t *alerts_json(unsigned alerts)
{
    json_t *list = json_array();
    for (int i = 0; list && i < ALERT_KINDS; i++)
        if (alerts >> i & 1)
            json_array_append_new(list, json_string(alert_kind_name((enum alert_kind)i)));
    return list;
}

json_t *status_camera_json(struct camera *camera, int64_t now)
{
    struct camera_description description = camera_report_describe(&camera->report);
    char url[URL_MAX];
    const struct camera_report *report = &camera->report;
    int state = atomic_load(&camera->report.state);
    const char *backend = atomic_load(&camera->report.backend);
    const int gpu = atomic_load(&camera->report.gpu);
    char *codec = strchr(description.decoder, ' '); // "cpu h264"
    if (codec)
        *codec++ = 0;
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:I, s:s?, s:o, s:f, s:I, "
        "s:s?, s:I, s:I, s:o, "
        "s:I, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "name", camera->config->name, "state", camera_state_name(state), "next_try_s",
        next_try(camera, state, now), "url",
        status_string(config_camera_url(camera->config, url, sizeof url)), "stream",
        status_string_or_null(description.stream), "codec",
        status_string_or_null(codec ? codec : ""), "profile",
        status_string_or_null(description.profile), "bits_per_second",
        8 * rate_counter_rate(&camera->bytes), "keyframe_s", keyframe_json(report), "clock",
        clock_json(report), "picture", picture_json(&description.memory), "decoder",
        status_string_or_null(description.decoder), "decoder_fallbacks",
        (json_int_t)atomic_load(&camera->report.fallbacks), "backend", backend, "device",
        backend && gpu >= 0 ? json_integer(gpu) : json_null(), "fps_in",
        rate_counter_rate(&camera->pictures), "pictures",
        (json_int_t)atomic_load(&camera->report.pictures), "decodes", decodes_name(&camera->report),
        "skipped", (json_int_t)atomic_load(&camera->report.skipped), "converted",
        (json_int_t)atomic_load(&camera->report.converted), "flagged",
        flagged_json(&camera->report), "reconnects",
        (json_int_t)atomic_load(&camera->report.reconnects), "thread", shares_json(camera, now),
        "network", network_json(&description.network), "last_error",
        last_error_json(&description.last_error, now), "scene", scene_json(camera, now),
        "availability", availability_json(&camera->availability), "alerts",
        alerts_json(camera->alerts), "outputs", outputs_json(camera->subscriptions, now));
}
