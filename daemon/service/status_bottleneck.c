#include "daemon/service/status_bottleneck.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/base/cgroup.h"
#include "daemon/base/clock.h"
#include "daemon/base/processor_time.h"
#include "daemon/service/bottleneck.h"
#include "daemon/service/status_camera.h"
#include "daemon/supervisor/peak_memory.h"

static int count_running(const struct metrics *metrics)
{
    int n = 0;
    for (int i = 0; i < metrics->n_cameras; i++)
        n += atomic_load(&metrics->cameras[i]->report.state) == CAMERA_RUNNING;
    return n;
}

static void sample_running(struct load *load, const struct metrics *metrics, int64_t now)
{
    if (load->sampled_ns)
        load->running_ns += (uint64_t)count_running(metrics) * (uint64_t)(now - load->sampled_ns);
    load->sampled_ns = now;
    rate_counter_sample(&load->running, load->running_ns, now);
}

// Cameras that have shown what their pictures are.
static int count_seen(const struct metrics *metrics)
{
    int n = 0;
    for (int i = 0; i < metrics->n_cameras; i++)
        n += atomic_load(&metrics->cameras[i]->report.pictures) != 0;
    return n;
}

// The plan takes a while for hundreds of cameras: it is made anew only for others, for first
// pictures, or for another device.
static void plan_memory(struct load *load, const struct metrics *metrics)
{
    struct peak_memory peak;
    const struct config none = {0};
    const char *backend = devices_backend_name(metrics->devices);
    const int seen = count_seen(metrics);
    if (load->has_memory && load->memory_seen == seen &&
        load->memory_reload == metrics->reload->applied && load->memory_backend == backend &&
        load->memory_nvdec == load->has_nvdec)
        return;
    load->has_memory = peak_memory_open(&peak, &none, metrics->n_cameras) == 0;
    if (load->has_memory) {
        for (int i = 0; i < metrics->n_cameras; i++)
            peak_memory_add_camera(&peak, metrics->cameras[i]);
        devices_memory(metrics->devices, &peak.config, &load->memory);
    }
    peak_memory_close(&peak);
    load->memory_reload = metrics->reload->applied;
    load->memory_backend = backend;
    load->memory_seen = seen;
    load->memory_nvdec = load->has_nvdec;
}

void load_sample(struct load *load, const struct metrics *metrics, int64_t now)
{
    struct devices *devices = metrics->devices;
    uint64_t busy = 0;
    sample_running(load, metrics, now);
    rate_counter_sample(&load->own, (uint64_t)processor_time_own_ns(), now);
    rate_counter_sample(&load->all, (uint64_t)processor_time_all_ns(), now);
    load->has_nvdec = devices_nvdec_busy(devices, &busy);
    rate_counter_sample(&load->nvdec, busy, now);

    struct device_busy device = {0};
    load->has_device = devices_device_busy(devices, &device);
    rate_counter_sample(&load->upload, device.upload, now);
    rate_counter_sample(&load->kernel, device.kernel, now);
    rate_counter_sample(&load->download, device.download, now);
    plan_memory(load, metrics);
}

// -1: there is nothing to be busy. Kernels that ran side by side may come to more than 1.
static double share(const struct rate_counter *counter, bool has)
{
    return has ? fmin(rate_counter_rate(counter) / 1e9, 1) : -1;
}

static json_t *share_json(double share)
{
    return share >= 0 ? json_real(share) : json_null();
}

static void add_output(struct bottleneck_facts *facts, const struct output *output)
{
    facts->offered += rate_counter_rate(&output->emitted) + rate_counter_rate(&output->lost);
    facts->overflow += rate_counter_rate(&output->overflowed);
}

static bool may_wait(const struct camera *camera)
{
    for (int i = 0; i < camera->subscriptions->n; i++)
        if (camera->subscriptions->list[i].output->config->overflow == OVERFLOW_WAIT)
            return true;
    return false;
}

static void add_camera(struct bottleneck_facts *facts, const struct camera *camera, int64_t now)
{
    double submit = status_camera_share(camera, STAGE_SUBMIT, now);
    facts->decode = fmax(facts->decode, status_camera_share(camera, STAGE_DECODE, now));
    if (submit > facts->submit) {
        facts->submit = submit;
        facts->waits = may_wait(camera);
    }
    for (int i = 0; i < camera->subscriptions->n; i++)
        add_output(facts, camera->subscriptions->list[i].output);
}

// --- memory

long long resident_bytes(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*d %lld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static long long meminfo_available(void)
{
    char line[128];
    long long kib = -1;
    FILE *file = fopen("/proc/meminfo", "re"); // ProcSubset=pid of our unit hides it
    while (file && kib < 0 && fgets(line, sizeof line, file))
        sscanf(line, "MemAvailable: %lld kB", &kib);
    if (file)
        fclose(file);
    return kib < 0 ? -1 : kib * 1024;
}

// What the cameras do not use yet of what they need is as good as used.
static double host_left(double planned)
{
    const double resident = (double)resident_bytes();
    const double box = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double available = (double)meminfo_available();
    const size_t group = cgroup_memory_limit(CGROUP_MEMBERSHIP, CGROUP_ROOT);
    double left = available >= 0 ? available : box - resident;
    if (group < SIZE_MAX)
        left = fmin(left, (double)group - resident);
    return left - fmax(planned - resident, 0);
}

static void add_memory(struct bottleneck_facts *facts, const struct load *load, int cameras)
{
    const struct devices_memory *memory = &load->memory;
    if (cameras == 0 || !load->has_memory)
        return;
    facts->memory_need = (double)memory->need.pinned / cameras;
    facts->memory_left = host_left((double)memory->need.pinned);
    facts->device_need = (double)memory->need.device / cameras;
    facts->device_left = (double)memory->device_limit - (double)memory->need.device;
}

json_t *status_bottleneck_json(const struct load *load, const struct metrics *metrics)
{
    const int64_t now = monotonic_ns();
    struct bottleneck_facts facts = {
        .running = count_running(metrics),
        .running_mean = rate_counter_rate(&load->running) / 1e9,
        .processors = processor_time_limit(),
        .used = rate_counter_rate(&load->own) / 1e9,
        .busy = rate_counter_rate(&load->all) / 1e9,
        .nvdec = share(&load->nvdec, load->has_nvdec),
        .upload = share(&load->upload, load->has_device),
        .kernel = share(&load->kernel, load->has_device),
        .download = share(&load->download, load->has_device),
    };
    for (int i = 0; i < metrics->n_cameras; i++)
        add_camera(&facts, metrics->cameras[i], now);
    add_memory(&facts, load, metrics->n_cameras);
    struct bottleneck bottleneck = bottleneck_judge(&facts);
    return json_pack(
        "{s:s, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o}", "leg",
        bottleneck_stage_name(bottleneck.stage), "share",
        bottleneck.share > 0 ? json_real(bottleneck.share) : json_null(), "cameras_more",
        bottleneck.more >= 0 ? json_integer(bottleneck.more) : json_null(), "ends_first",
        bottleneck.ends_first, "cpu", facts.busy > 0 ? json_real(facts.busy) : json_null(), "nvdec",
        share_json(facts.nvdec), "upload", share_json(facts.upload), "kernel",
        share_json(facts.kernel), "download", share_json(facts.download));
}
