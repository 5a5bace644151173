#include "daemon/service/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/alert/judge.h"
#include "daemon/base/clock.h"
#include "daemon/cluster/member.h"
#include "daemon/supervisor/cameras.h"

void metrics_print_head(FILE *to, const char *name, const char *type, const char *help)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

bool metrics_wants_camera(const struct metrics *metrics, const struct camera *camera)
{
    return !metrics->only_camera || strcmp(metrics->only_camera, camera->config->name) == 0;
}

struct camera *metrics_camera(const struct metrics *metrics, const char *name)
{
    for (int i = 0; i < metrics->n_cameras; i++)
        if (strcmp(metrics->cameras[i]->config->name, name) == 0)
            return metrics->cameras[i];
    return NULL;
}

// Names of cameras and outputs need no escaping; a stream's own description may.
static void print_label(FILE *to, const char *name, const char *value)
{
    fprintf(to, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            putc('\\', to);
        putc(*value == '\n' ? ' ' : *value, to);
    }
    putc('"', to);
}

static void print_count(FILE *to, const char *name, const struct camera *camera,
                        const _Atomic uint64_t *count)
{
    fprintf(to, "%s{camera=\"%s\"} %" PRIu64 "\n", name, camera->config->name, atomic_load(count));
}

static void print_pictures(FILE *to, const struct metrics *metrics)
{
    struct camera *const *cameras = metrics->cameras;
    metrics_print_head(to, "framed_pictures_total", "counter", "Pictures that the decoder gave.");
    for (int i = 0; i < metrics->n_cameras; i++)
        print_count(to, "framed_pictures_total", cameras[i], &cameras[i]->report.pictures);
    metrics_print_head(to, "framed_pictures_converted_total", "counter",
                       "Pictures that libswscale converted to a format that kernels read.");
    for (int i = 0; i < metrics->n_cameras; i++)
        print_count(to, "framed_pictures_converted_total", cameras[i],
                    &cameras[i]->report.converted);
    metrics_print_head(to, "framed_decoder_fallbacks_total", "counter",
                       "Times that the cpu took over decoding from a device.");
    for (int i = 0; i < metrics->n_cameras; i++)
        print_count(to, "framed_decoder_fallbacks_total", cameras[i],
                    &cameras[i]->report.fallbacks);
    metrics_print_head(to, "framed_pictures_flagged_total", "counter",
                       "Decoded pictures whose frame header has the flag.");
    for (int i = 0; i < metrics->n_cameras; i++)
        for (int flag = 0; flag < COUNTED_FLAGS; flag++)
            fprintf(to, "framed_pictures_flagged_total{camera=\"%s\",flag=\"%s\"} %" PRIu64 "\n",
                    cameras[i]->config->name, counted_flag_name((enum counted_flag)flag),
                    atomic_load(&cameras[i]->report.flagged[flag]));
}

// Prints only cameras that framed's own RTSP client reads.
static void print_network(FILE *to, const struct metrics *metrics)
{
    bool headed = false;
    for (int i = 0; i < metrics->n_cameras; i++) {
        const struct camera *camera = metrics->cameras[i];
        const struct demux_network network = camera_report_describe(&camera->report).network;
        const struct {
            const char *result;
            uint64_t n;
        } counts[] = {{"received", network.packets},
                      {"lost", network.lost},
                      {"late", network.late},
                      {"duplicate", network.duplicate},
                      {"foreign", network.foreign}};
        if (!network.transport)
            continue;
        if (!headed)
            metrics_print_head(
                to, "framed_rtp_packets_total", "counter",
                "RTP packets of the camera: received; lost on the way; late, duplicate or "
                "foreign, and not used.");
        headed = true;
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            fprintf(to, "framed_rtp_packets_total{camera=\"%s\",result=\"%s\"} %" PRIu64 "\n",
                    camera->config->name, counts[k].result, counts[k].n);
    }
}

static void print_cameras(FILE *to, const struct metrics *metrics)
{
    metrics_print_head(to, "framed_camera_up", "gauge", "1 while the camera delivers pictures.");
    for (int i = 0; i < metrics->n_cameras; i++) {
        struct camera *camera = metrics->cameras[i];
        fprintf(to, "framed_camera_up{camera=\"%s\"} %d\n", camera->config->name,
                atomic_load(&camera->report.state) == CAMERA_RUNNING);
    }
    metrics_print_head(to, "framed_camera_info", "gauge",
                       "Backend, GPU (if any), decoder and stream of the camera, as labels.");
    for (int i = 0; i < metrics->n_cameras; i++) {
        struct camera *camera = metrics->cameras[i];
        const struct camera_description description = camera_report_describe(&camera->report);
        const char *backend = atomic_load(&camera->report.backend);
        const int gpu = atomic_load(&camera->report.gpu);
        fprintf(to, "framed_camera_info{camera=\"%s\",backend=\"%s\",device=\"",
                camera->config->name, backend ? backend : "");
        if (backend && gpu >= 0)
            fprintf(to, "%d", gpu);
        fputs("\",", to);
        print_label(to, "decoder", description.decoder);
        putc(',', to);
        print_label(to, "stream", description.stream);
        fputs("} 1\n", to);
    }
    print_pictures(to, metrics);
    print_network(to, metrics);
    metrics_print_head(to, "framed_reconnects_total", "counter",
                       "Attempts to connect after the first.");
    for (int i = 0; i < metrics->n_cameras; i++)
        print_count(to, "framed_reconnects_total", metrics->cameras[i],
                    &metrics->cameras[i]->report.reconnects);
}

// Prints both names, so that a change of device shows as a change of values.
static void print_backend(FILE *to, struct devices *devices)
{
    static const char *const names[] = {"cpu", "cuda"};
    const char *works = devices_backend_name(devices);
    metrics_print_head(to, "framed_backend", "gauge", "1 for the backend in use.");
    for (int i = 0; i < 2; i++)
        fprintf(to, "framed_backend{backend=\"%s\"} %d\n", names[i], strcmp(names[i], works) == 0);
    metrics_print_head(to, "framed_backend_fallbacks_total", "counter",
                       "Times that other devices took over from a GPU that failed.");
    fprintf(to, "framed_backend_fallbacks_total %" PRIu64 "\n", devices_fallbacks(devices));
}

typedef void print_device_fn(FILE *, const char *labels, const struct device_status *);

// For each GPU.
static void each_device(FILE *to, const struct device_status status[], int n,
                        print_device_fn *print)
{
    char labels[32];
    for (int i = 0; i < n; i++) {
        if (status[i].number < 0)
            continue;
        snprintf(labels, sizeof labels, "{device=\"%d\"", status[i].number);
        print(to, labels, &status[i]);
    }
}

static void print_up(FILE *to, const char *labels, const struct device_status *status)
{
    fprintf(to, "framed_device_up%s} %d\n", labels, status->works);
}

static void print_leases(FILE *to, const char *labels, const struct device_status *status)
{
    fprintf(to, "framed_device_cameras%s} %d\n", labels, status->cameras);
}

static void print_memory(FILE *to, const char *labels, const struct device_status *status)
{
    fprintf(to, "framed_device_memory_bytes%s,kind=\"reserved\"} %zu\n", labels, status->reserved);
    if (status->limit < SIZE_MAX)
        fprintf(to, "framed_device_memory_bytes%s,kind=\"limit\"} %zu\n", labels, status->limit);
}

// Busy seconds per second are the share in use.
static void print_busy(FILE *to, const char *labels, const struct device_status *status)
{
    static const char name[] = "framed_device_busy_seconds_total";
    const struct device_busy *busy = &status->busy;
    if (status->has_busy)
        fprintf(to,
                "%s%s,leg=\"upload\"} %.9f\n%s%s,leg=\"kernel\"} %.9f\n"
                "%s%s,leg=\"download\"} %.9f\n",
                name, labels, (double)busy->upload / 1e9, name, labels, (double)busy->kernel / 1e9,
                name, labels, (double)busy->download / 1e9);
}

static void print_nvdec(FILE *to, const char *labels, const struct device_status *status)
{
    if (status->has_nvdec)
        fprintf(to, "framed_nvdec_busy_seconds_total%s} %.9f\n", labels,
                (double)status->nvdec_busy_ns / 1e9);
}

static void print_devices(FILE *to, struct devices *devices)
{
    struct device_status status[DEVICES_MAX];
    const int n = devices_status(devices, status);
    if (n == 1)
        return; // the CPU
    metrics_print_head(to, "framed_device_up", "gauge", "1 while the GPU works.");
    each_device(to, status, n, print_up);
    metrics_print_head(to, "framed_device_cameras", "gauge", "Cameras that the GPU works for.");
    each_device(to, status, n, print_leases);
    metrics_print_head(to, "framed_device_memory_bytes", "gauge",
                       "Memory of the GPU: that cameras have reserved, and that they may.");
    each_device(to, status, n, print_memory);
    metrics_print_head(to, "framed_device_busy_seconds_total", "counter",
                       "Time that copies and kernels took on the GPU, each as if it ran alone.");
    each_device(to, status, n, print_busy);
    metrics_print_head(
        to, "framed_nvdec_busy_seconds_total", "counter",
        "Time that the places inside the GPU's NVDEC were taken: 1 a second is all of them.");
    each_device(to, status, n, print_nvdec);
}

static void print_reloads(FILE *to, const struct reload *reload)
{
    metrics_print_head(to, "framed_config_last_reload_successful", "gauge",
                       "0 when the last reload was refused.");
    fprintf(to, "framed_config_last_reload_successful %d\n", reload->is_applied);
    metrics_print_head(to, "framed_config_reloads_total", "counter",
                       "Reloads of the configuration.");
    fprintf(to,
            "framed_config_reloads_total{result=\"applied\"} %" PRIu64 "\n"
            "framed_config_reloads_total{result=\"refused\"} %" PRIu64 "\n",
            reload->applied, reload->refused);
}

// --- outputs: many lines, so printed without printf

static void print_number(FILE *to, uint64_t value)
{
    char digits[20];
    size_t n = sizeof digits;
    do
        digits[--n] = (char)('0' + value % 10);
    while (value /= 10);
    fwrite_unlocked(digits + n, 1, sizeof digits - n, to);
}

void metrics_print_sample(FILE *to, const char *name, const char *labels, const char *label,
                          const char *of, uint64_t value)
{
    fputs_unlocked(name, to);
    fputs_unlocked(labels, to);
    if (label) {
        fputs_unlocked(label, to);
        fputs_unlocked(of, to);
        putc_unlocked('"', to);
    }
    fputs_unlocked("} ", to);
    print_number(to, value);
    putc_unlocked('\n', to);
}

typedef void print_output_fn(FILE *, const char *labels, const struct output *);

static void each_output(FILE *to, const struct metrics *metrics, print_output_fn *print)
{
    char labels[128]; // names are short
    for (int i = 0; i < metrics->n_cameras; i++) {
        const struct camera *camera = metrics->cameras[i];
        for (int o = 0; o < camera->subscriptions->n; o++) {
            const struct output *output = camera->subscriptions->list[o].output;
            snprintf(labels, sizeof labels, "{camera=\"%s\",output=\"%s\"", camera->config->name,
                     output->config->name);
            print(to, labels, output);
        }
    }
}

static void print_frames(FILE *to, const char *labels, const struct output *output)
{
    // Reads offered last, so that the parts never exceed it.
    uint64_t emitted = atomic_load(&output->ledger.emitted);
    uint64_t offered = atomic_load(&output->ledger.offered);
    metrics_print_sample(to, "framed_frames_total", labels, ",stage=\"", "offered", offered);
    metrics_print_sample(to, "framed_frames_total", labels, ",stage=\"", "emitted", emitted);
}

static void print_losses(FILE *to, const char *labels, const struct output *output)
{
    for (int i = 0; i < LOSSES; i++)
        metrics_print_sample(to, "framed_frames_lost_total", labels, ",reason=\"",
                             loss_name((enum loss)i), atomic_load(&output->ledger.lost[i]));
}

static void print_clients(FILE *to, const char *labels, const struct output *output)
{
    metrics_print_sample(to, "framed_sink_clients", labels, NULL, NULL,
                         (uint64_t)sink_clients(output->outlet->sink));
}

void metrics_print_latency(FILE *to, const char *name, const char *labels,
                           const struct latency *latency)
{
    char bucket[64];
    uint64_t count = 0;
    snprintf(bucket, sizeof bucket, "%s_bucket", name);
    int i = 0;
    for (int coarse = 0; coarse < LATENCY_COARSE; coarse++) {
        for (; i <= latency_coarse_bucket(coarse); i++)
            count += atomic_load_explicit(&latency->bucket[i], memory_order_relaxed);
        metrics_print_sample(to, bucket, labels, ",le=\"", latency_coarse_s[coarse], count);
    }
    for (; i < LATENCY_BUCKETS; i++)
        count += atomic_load_explicit(&latency->bucket[i], memory_order_relaxed);
    metrics_print_sample(to, bucket, labels, ",le=\"", "+Inf", count);
    fprintf(to, "%s_sum%s} %.9f\n%s_count%s} %" PRIu64 "\n", name, labels,
            (double)atomic_load(&latency->sum_ns) / 1e9, name, labels, count);
}

static void print_latency(FILE *to, const char *labels, const struct output *output)
{
    metrics_print_latency(to, "framed_output_latency_seconds", labels, &output->latency);
}

// --- batches and stages

// For batches or stages: the label is "batch" or "stage".
static void print_histogram(FILE *to, const char *name, const char *label, const char *value,
                            const struct histogram *histogram)
{
    uint64_t count = 0;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        count += atomic_load(&histogram->bucket[i]);
        fprintf(to, "%s_bucket{%s=\"%s\",le=\"%g\"} %" PRIu64 "\n", name, label, value,
                (double)histogram_bounds_ns[i] / 1e9, count);
    }
    count += atomic_load(&histogram->bucket[HISTOGRAM_BUCKETS]);
    fprintf(to,
            "%s_bucket{%s=\"%s\",le=\"+Inf\"} %" PRIu64 "\n"
            "%s_sum{%s=\"%s\"} %.9f\n"
            "%s_count{%s=\"%s\"} %" PRIu64 "\n",
            name, label, value, count, name, label, value,
            (double)atomic_load(&histogram->sum_ns) / 1e9, name, label, value, count);
}

const struct outlet *metrics_next_batch(const struct metrics *metrics, const struct outlet *batch)
{
    batch = batch ? batch->next : metrics->batches;
    while (batch && !batch_has_cameras(batch, metrics->cameras, metrics->n_cameras))
        batch = batch->next;
    return batch;
}

static void print_closed(FILE *to, const char *name, const struct batch *batch)
{
    for (int i = CLOSED_FULL; i <= CLOSED_STOPPING; i++)
        fprintf(to, "framed_batches_total{batch=\"%s\",closed=\"%s\"} %" PRIu64 "\n", name,
                batch_close_name((enum batch_close)i), atomic_load(&batch->closed[i]));
}

static void print_elements(FILE *to, const char *name, const struct batch *batch)
{
    uint64_t count = 0;
    for (int i = 0; i < BATCH_FILL_BUCKETS; i++) {
        count += atomic_load(&batch->by_filled[i]);
        fprintf(to, "framed_batch_elements_bucket{batch=\"%s\",le=\"%d\"} %" PRIu64 "\n", name,
                1 << i, count);
    }
    fprintf(to,
            "framed_batch_elements_bucket{batch=\"%s\",le=\"+Inf\"} %" PRIu64 "\n"
            "framed_batch_elements_sum{batch=\"%s\"} %" PRIu64 "\n"
            "framed_batch_elements_count{batch=\"%s\"} %" PRIu64 "\n",
            name, count, name, atomic_load(&batch->elements), name, count);
}

static void print_wait(FILE *to, const char *name, const struct batch *batch)
{
    print_histogram(to, "framed_batch_wait_seconds", "batch", name, &batch->wait);
}

static void each_batch(FILE *to, const struct metrics *metrics,
                       void (*print)(FILE *, const char *name, const struct batch *))
{
    const struct outlet *batch = NULL;
    while ((batch = metrics_next_batch(metrics, batch)))
        print(to, batch->config->name, batch->batch);
}

static void print_batches(FILE *to, const struct metrics *metrics)
{
    if (!metrics_next_batch(metrics, NULL))
        return;
    metrics_print_head(to, "framed_batches_total", "counter",
                       "Batches that were closed, by reason.");
    each_batch(to, metrics, print_closed);
    metrics_print_head(to, "framed_batch_elements", "histogram",
                       "Elements of a batch that hold a picture.");
    each_batch(to, metrics, print_elements);
    metrics_print_head(to, "framed_batch_wait_seconds", "histogram",
                       "Time from a batch's first picture to its close.");
    each_batch(to, metrics, print_wait);
}

// --- alerts

static void print_availability(FILE *to, const struct metrics *metrics)
{
    bool any = false; // an availability is known; else the metric is left out
    for (int i = 0; i < metrics->n_cameras; i++) {
        if (metrics->cameras[i]->availability.known_s == 0)
            continue;
        if (!any)
            metrics_print_head(to, "framed_camera_availability_ratio", "gauge",
                               "Share of the known time of seven days in which the camera "
                               "delivered pictures.");
        any = true;
        fprintf(to, "framed_camera_availability_ratio{camera=\"%s\"} %.6f\n",
                metrics->cameras[i]->config->name, metrics->cameras[i]->availability.share);
    }
    metrics_print_head(to, "framed_camera_availability_known_seconds", "gauge",
                       "The known time of seven days.");
    for (int i = 0; i < metrics->n_cameras; i++)
        fprintf(to, "framed_camera_availability_known_seconds{camera=\"%s\"} %" PRId64 "\n",
                metrics->cameras[i]->config->name, metrics->cameras[i]->availability.known_s);
}

static void print_raised(FILE *to, const struct metrics *metrics)
{
    metrics_print_head(to, "framed_camera_alert", "gauge", "1 while the alert is raised.");
    for (int i = 0; i < metrics->n_cameras; i++)
        for (int kind = 0; kind < ALERT_KINDS; kind++)
            fprintf(to, "framed_camera_alert{camera=\"%s\",kind=\"%s\"} %d\n",
                    metrics->cameras[i]->config->name, alert_kind_name((enum alert_kind)kind),
                    (int)(metrics->cameras[i]->alerts >> kind & 1));
}

static void print_deliveries(FILE *to, struct alerts *alerts)
{
    bool headed = false;
    for (int i = 0; alerts && i < TARGETS; i++) {
        const char *target = alert_target_name((enum alert_target)i);
        int pending;
        const struct outbox_counts counts = alerts_count(alerts, (enum alert_target)i, &pending);
        if (!alerts_has_target(alerts, (enum alert_target)i))
            continue;
        if (!headed)
            metrics_print_head(to, "framed_alert_events_total", "counter",
                               "Events of alerts: delivered, lost, and tries that failed.");
        headed = true;
        fprintf(to,
                "framed_alert_events_total{target=\"%s\",result=\"delivered\"} %" PRIu64 "\n"
                "framed_alert_events_total{target=\"%s\",result=\"lost\"} %" PRIu64 "\n"
                "framed_alert_events_total{target=\"%s\",result=\"failed\"} %" PRIu64 "\n",
                target, counts.delivered, target, counts.lost, target, counts.failed);
    }
    headed = false;
    for (int i = 0; alerts && i < TARGETS; i++) {
        int pending;
        alerts_count(alerts, (enum alert_target)i, &pending);
        if (!alerts_has_target(alerts, (enum alert_target)i))
            continue;
        if (!headed)
            metrics_print_head(to, "framed_alert_events_pending", "gauge",
                               "Events of alerts that are still to be delivered.");
        headed = true;
        fprintf(to, "framed_alert_events_pending{target=\"%s\"} %d\n",
                alert_target_name((enum alert_target)i), pending);
    }
}

static void print_alerts(FILE *to, const struct metrics *metrics)
{
    print_availability(to, metrics);
    print_raised(to, metrics);
    print_deliveries(to, metrics->alerts);
}

// --- previews, which belong to no output, and the cluster

static void print_value(FILE *to, const char *name, const char *type, const char *help,
                        double value)
{
    metrics_print_head(to, name, type, help);
    fprintf(to, "%s %.9g\n", name, value);
}

static void print_previews(FILE *to, const struct metrics *metrics)
{
    if (!metrics->previews)
        return;
    const struct preview_counts counts = previews_counts(metrics->previews);
    print_value(to, "framed_viewers", "gauge", "Streams of pictures that clients look at.",
                metrics->viewers);
    print_value(to, "framed_previews", "gauge", "Kinds of pictures that are asked for now.",
                counts.kinds);
    print_value(to, "framed_previews_total", "counter", "JPEGs made.", (double)counts.made);
    print_value(to, "framed_previews_dropped_total", "counter",
                "JPEGs that were due and gave way to newer ones.", (double)counts.dropped);
    print_value(to, "framed_preview_seconds_total", "counter", "Processor time of encoding them.",
                (double)counts.busy_ns / 1e9);
}

struct counting {
    const char *node;
    struct site_counts counts;
};

static void count_site(void *opaque, const struct site *site)
{
    struct counting *counting = opaque;
    counting->counts = site_counts(site, counting->node);
}

struct site_counts metrics_site_counts(const struct metrics *metrics)
{
    struct counting counting = {0};
    if (metrics->member) {
        counting.node = member_node(metrics->member);
        member_look(metrics->member, count_site, &counting);
    }
    return counting.counts;
}

static void print_cluster(FILE *to, const struct metrics *metrics)
{
    if (!metrics->member)
        return;
    const struct member_health health = member_health(metrics->member);
    const double alone_s = health.alone_ns ? (double)(boottime_ns() - health.alone_ns) / 1e9 : 0;
    print_value(to, "framed_cluster_member", "gauge", "Whether this box is in its cluster.",
                health.state == MEMBER_IN);
    print_value(to, "framed_cluster_alone_seconds", "gauge",
                "Since etcd answered this box no more; 0: it answers.", alone_s);
    print_value(to, "framed_cluster_nodes", "gauge", "Boxes that live.", health.nodes);
    print_value(to, "framed_cluster_cameras", "gauge", "Cameras of the site.", health.cameras);
    print_value(to, "framed_cluster_unplaced", "gauge",
                "Cameras of the site that the plan gives to no box.", health.unplaced);
    print_value(to, "framed_cluster_troubled", "gauge",
                "Cameras of the site that do not run, by what boxes report.",
                metrics_site_counts(metrics).troubled);
    print_value(to, "framed_cluster_plan", "gauge", "Version of the plan.", (double)health.version);
    print_value(to, "framed_cluster_lost_total", "counter", "Times that the lease was lost.",
                (double)health.lost);
    print_value(to, "framed_cluster_plans_total", "counter", "Plans that this box wrote.",
                (double)health.plans);
}

// --- all of it

void metrics_print(FILE *to, const struct metrics *metrics)
{
    metrics_print_head(to, "framed_build_info", "gauge", "Version of the daemon, as a label.");
    fprintf(to, "framed_build_info{version=\"%s\"} 1\n", FRAMED_VERSION_TEXT);
    print_reloads(to, metrics->reload);
    print_backend(to, metrics->devices);
    print_devices(to, metrics->devices);
    print_cameras(to, metrics);
    metrics_print_head(to, "framed_frames_total", "counter",
                       "Frames offered to and emitted by an output.");
    each_output(to, metrics, print_frames);
    metrics_print_head(to, "framed_frames_lost_total", "counter",
                       "Frames that an output lost, by reason.");
    each_output(to, metrics, print_losses);
    metrics_print_head(to, "framed_sink_clients", "gauge", "Clients connected to an output.");
    each_output(to, metrics, print_clients);
    metrics_print_head(
        to, "framed_output_latency_seconds", "histogram",
        "Time from receiving a packet to the finished frame, of frames given to an output.");
    each_output(to, metrics, print_latency);
    metrics_print_head(
        to, "framed_stage_duration_seconds", "histogram",
        "Time of a frame in a stage; decode: received to decoded, process: decoded to finished.");
    print_histogram(to, "framed_stage_duration_seconds", "stage", "decode", metrics->decode);
    print_histogram(to, "framed_stage_duration_seconds", "stage", "process", metrics->process);
    print_batches(to, metrics);
    metrics_print_findings(to, metrics);
    print_alerts(to, metrics);
    print_previews(to, metrics);
    print_cluster(to, metrics);
}

char *metrics_text(const struct metrics *metrics, size_t *size)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, size);
    if (!to)
        return NULL;
    metrics_print(to, metrics);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

int metrics_save(const char *path, const char *text, size_t size)
{
    char *partial = NULL;
    if (asprintf(&partial, "%s.new", path) < 0)
        return -ENOMEM;
    FILE *file = fopen(partial, "we");
    int rc = file && fwrite(text, 1, size, file) == size ? 0 : -errno;
    if (file && fclose(file) != 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(partial, path) != 0)
        rc = -errno;
    if (file && rc < 0)
        unlink(partial);
    free(partial);
    return rc;
}
