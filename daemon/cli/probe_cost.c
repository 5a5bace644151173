#include "daemon/cli/probe_cost.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/load.h"
#include "daemon/base/machine.h"
#include "daemon/device/budget.h"

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
        .memory = budget_camera(camera, probe->lease.driver, probe_uses_nvdec(probe)),
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
