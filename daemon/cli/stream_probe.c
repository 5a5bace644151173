#include "daemon/cli/stream_probe.h"

#include <errno.h>
#include <libavcodec/packet.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/load.h"
#include "config/object.h"
#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/machine.h"
#include "daemon/device/budget.h"
#include "daemon/wire.h"

enum { MANY_B_FRAMES = 16 };

static const _Atomic bool never; // only deadlines stop a probe

// --- measuring

static void measure_packet(struct stream_probe *probe, const struct packet *packet)
{
    if (probe->packets++ == 0) {
        probe->first_ns = packet->arrived_ns;
        probe->highest_pts_ns = packet->pts_ns;
    }
    probe->last_ns = packet->arrived_ns;
    probe->bytes += packet->av->size;
    probe->clock |= packet->capture_clock;
    probe->behind = packet->pts_ns < probe->highest_pts_ns ? probe->behind + 1 : 0;
    if (probe->behind > probe->b_frames && probe->behind < MANY_B_FRAMES)
        probe->b_frames = probe->behind;
    if (packet->pts_ns > probe->highest_pts_ns)
        probe->highest_pts_ns = packet->pts_ns;
    if (!packet->keyframe)
        return;
    const int64_t distance_ns = packet->pts_ns - probe->key_pts_ns;
    if (probe->keyframes++ > 0 && distance_ns > probe->key_distance_ns)
        probe->key_distance_ns = distance_ns;
    probe->key_pts_ns = packet->pts_ns;
}

// Takes all pictures that the decoder has ready. Returns 0, or the error that ends the probe.
static int take_pictures(struct stream_probe *probe)
{
    struct frame frame;
    int rc;
    while ((rc = decoder_receive(probe->decoder, &frame)) == 0) {
        probe->damaged += frame.lost || (frame.info.flags & FRAMED_FLAG_DAMAGED);
        if (!frame.lost) {
            probe->pictures++;
            probe->width = frame.image.width;
            probe->height = frame.image.height;
            if (!probe->shown_ns)
                probe->shown_ns = monotonic_ns();
        }
        frame_release(&frame);
    }
    return rc == -EAGAIN ? 0 : rc;
}

static int decode_packet(struct stream_probe *probe, const struct packet *packet)
{
    const int64_t begun_ns = processor_time_thread_ns();
    int rc = decoder_send(probe->decoder, packet);
    if (rc == 0)
        rc = take_pictures(probe);
    probe->spent_ns += processor_time_thread_ns() - begun_ns;
    return rc;
}

// Measures the other load of the processors, over the time of the probe.
static void measure_others(struct stream_probe *probe, int64_t begun_ns, int64_t all_ns,
                           int64_t own_ns)
{
    const int64_t wall_ns = monotonic_ns() - begun_ns;
    const int64_t others_ns = processor_time_all_ns() - all_ns - (processor_time_own_ns() - own_ns);
    probe->others = all_ns > 0 && wall_ns > 0 ? fmax(0, (double)others_ns / (double)wall_ns) : -1;
}

// Returns 0, even if the stream ends earlier.
static int measure(struct stream_probe *probe, double seconds)
{
    const int64_t begun_ns = monotonic_ns(), own_ns = processor_time_own_ns();
    const int64_t all_ns = processor_time_all_ns();
    struct packet packet;
    int rc = 0;
    while (rc == 0 &&
           (probe->packets == 0 || monotonic_ns() < probe->first_ns + (int64_t)(seconds * 1e9))) {
        rc = demux_read(probe->demux, &packet);
        if (rc == -EREMCHG) {
            decoder_restart(probe->decoder);
            rc = 0;
            continue;
        }
        if (rc < 0)
            break;
        measure_packet(probe, &packet);
        rc = decode_packet(probe, &packet);
    }
    measure_others(probe, begun_ns, all_ns, own_ns);
    if (rc == -ENODATA && probe->packets > 0)
        rc = decode_packet(probe, NULL);
    return rc == -ENODATA ? 0 : rc;
}

// --- opening

static int open_decoder(struct stream_probe *probe)
{
    const struct decode_options options = {
        .decode = probe->camera.decode,
        .threads = probe->camera.threads,
        .low_delay = demux_is_live(probe->camera.url),
        .losses_known = probe->demux->knows_losses,
        .in_flight = 1,
        .damaged = DAMAGED_FLAG,
    };
    int rc = device_acquire(probe->devices, &probe->camera, &probe->lease);
    if (rc == 0)
        rc = decoder_open(&probe->decoder, probe->demux->parameters, &options);
    if (rc == 0)
        rc = decoder_join(
            probe->decoder,
            &(struct decode_target){probe->lease.driver, probe->lease.backend, probe->lease.nvdec});
    return rc;
}

static int open_probe(struct stream_probe *probe, const char *url)
{
    if (object_init(&root_table, &probe->config) < 0 ||
        object_init(&camera_table, &probe->camera) < 0 || !(probe->camera.url = strdup(url)))
        return -ENOMEM;
    probe->camera.threads = 1;                              // this one, whose time is measured
    probe->config.cuda.devices = (struct gpu_list){1, {0}}; // one is enough
    int rc = devices_open(&probe->devices, &probe->config);
    if (rc < 0)
        return rc;
    probe->begun_ns = monotonic_ns();
    rc = demux_open(&probe->demux, &probe->camera, NULL, &never, NULL, probe->why,
                    sizeof probe->why);
    return rc == 0 ? open_decoder(probe) : rc;
}

static void explain(struct stream_probe *probe, int rc)
{
    char url[256];
    if (probe->demux && probe->demux->why[0])
        snprintf(probe->why, sizeof probe->why, "%s", probe->demux->why);
    if (!*probe->why)
        snprintf(probe->why, sizeof probe->why, "%s: %s",
                 config_camera_url(&probe->camera, url, sizeof url),
                 rc == -ENODATA   ? "it ends without a picture"
                 : rc == -ENOTSUP ? "no decoder for this stream"
                                  : strerror(-rc));
}

int stream_probe_run(struct stream_probe *probe, const char *url, double seconds)
{
    *probe = (struct stream_probe){0};
    int rc = open_probe(probe, url);
    if (rc == 0)
        rc = measure(probe, seconds);
    if (rc == 0 && probe->pictures == 0)
        rc = -ENODATA;
    if (rc < 0)
        explain(probe, rc);
    return rc;
}

void stream_probe_close(struct stream_probe *probe)
{
    demux_close(probe->demux);
    if (probe->decoder)
        decoder_leave(probe->decoder);
    decoder_close(probe->decoder);
    device_release(&probe->lease);
    devices_close(probe->devices);
    object_free(&camera_table, &probe->camera);
    object_free(&root_table, &probe->config);
}

// --- results

double stream_probe_seconds(const struct stream_probe *probe)
{
    return (double)(probe->last_ns - probe->first_ns) / 1e9;
}

double stream_probe_rate(const struct stream_probe *probe)
{
    const double seconds = stream_probe_seconds(probe);
    if (probe->demux->rate_den > 0)
        return (double)probe->demux->rate_num / probe->demux->rate_den;
    return seconds > 0 ? (double)(probe->packets - 1) / seconds : 0;
}

double stream_probe_decode_ms(const struct stream_probe *probe)
{
    return probe->pictures ? (double)probe->spent_ns / (double)probe->pictures / 1e6 : 0;
}

// --- the cost

bool probe_uses_nvdec(const struct stream_probe *probe)
{
    return probe->decoder && strncmp(decoder_describe(probe->decoder), "nvdec", 5) == 0;
}

static void judge(struct probe_cost *cost)
{
    const double mib = 1 << 20;
    cost->fits = false;
    if (cost->cores_free >= 0 && cost->cores > cost->cores_free)
        snprintf(cost->why, sizeof cost->why, "needs %.2f cores, %.2f are free", cost->cores,
                 cost->cores_free);
    else if (cost->memory_free >= 0 && cost->memory.pinned > (size_t)cost->memory_free)
        snprintf(cost->why, sizeof cost->why, "needs %.0f MiB of memory, %.0f are free",
                 (double)cost->memory.pinned / mib, (double)cost->memory_free / mib);
    else if (cost->memory.device > cost->device_limit)
        snprintf(cost->why, sizeof cost->why,
                 "needs %.0f MiB of the GPU's memory, %.0f are allowed",
                 (double)cost->memory.device / mib, (double)cost->device_limit / mib);
    else
        cost->fits = true;
}

static size_t device_limit(struct devices *devices)
{
    struct device_status status[DEVICES_MAX];
    size_t limit = SIZE_MAX;
    for (int i = 0, n = devices_status(devices, status); i < n; i++)
        if (status[i].works && status[i].number >= 0)
            limit = status[i].limit;
    return limit;
}

int probe_cost_measure(struct probe_cost *ret, const struct stream_probe *probe, const char *lines,
                       FILE *errors)
{
    struct config *config = NULL;
    const int rc = config_load_text(&config, lines, strlen(lines), "camera", errors);
    if (rc != 0)
        return rc < 0 ? rc : -EINVAL;
    struct camera_config *camera = &config->cameras[0];
    decoder_memory(probe->decoder, &camera->stream);
    camera->stream.packet_bytes = (int)(probe->bytes / (probe->packets > 0 ? probe->packets : 1));
    *ret = (struct probe_cost){
        .cores = stream_probe_decode_ms(probe) * stream_probe_rate(probe) / 1000,
        .memory = budget_camera(camera, probe->lease.driver, probe_uses_nvdec(probe)).all,
        .cores_all = processor_time_limit(),
        .cores_free = -1,
        .memory_free = host_memory_available(),
        .device_limit = device_limit(probe->devices),
    };
    if (probe->others >= 0)
        ret->cores_free = ret->cores_all > probe->others ? ret->cores_all - probe->others : 0;
    judge(ret);
    config_free(config);
    return 0;
}
