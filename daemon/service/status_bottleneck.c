#include "daemon/service/status_bottleneck.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/machine.h"
#include "daemon/service/bottleneck.h"
#include "daemon/service/status_camera.h"
#include "daemon/supervisor/reload.h"

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

// Counts the cameras that have shown a picture.
static int count_seen(const struct metrics *metrics)
{
    int n = 0;
    for (int i = 0; i < metrics->n_cameras; i++)
        n += atomic_load(&metrics->cameras[i]->report.pictures) != 0;
    return n;
}

// Returns two bits for each device: it works, and it has NVDEC.
static unsigned devices_bits(const struct load *load)
{
    unsigned bits = 0;
    for (int i = 0; i < load->n_devices; i++) {
        const struct device_status *status = &load->device[i].status;
        bits = bits << 2 | (status->works ? 2u : 0) | (status->has_nvdec ? 1u : 0);
    }
    return bits;
}

// A plan takes a while for hundreds of cameras: it is made again only after a reload, for first
// pictures, or for other devices.
static void plan_memory(struct load *load, const struct metrics *metrics)
{
    struct peak_memory peak;
    const struct config none = {0};
    const unsigned devices = devices_bits(load);
    const int seen = count_seen(metrics);
    if (load->has_memory && load->memory_seen == seen &&
        load->memory_reload == metrics->reload->applied && load->memory_devices == devices)
        return;
    load->has_memory = peak_memory_open(&peak, &none, metrics->n_cameras) == 0;
    if (load->has_memory) {
        for (int i = 0; i < metrics->n_cameras; i++)
            peak_memory_add_camera(&peak, metrics->cameras[i]);
        devices_memory(metrics->devices, &peak.config, &load->memory);
    }
    peak_memory_close(&peak);
    load->memory_reload = metrics->reload->applied;
    load->memory_devices = devices;
    load->memory_seen = seen;
}

static void sample_devices(struct load *load, struct devices *devices, int64_t now)
{
    struct device_status status[DEVICES_MAX];
    load->n_devices = devices_status(devices, status);
    for (int i = 0; i < load->n_devices; i++) {
        struct device_load *device = &load->device[i];
        device->status = status[i];
        rate_counter_sample(&device->nvdec, status[i].nvdec_busy_ns, now);
        rate_counter_sample(&device->upload, status[i].busy.upload, now);
        rate_counter_sample(&device->kernel, status[i].busy.kernel, now);
        rate_counter_sample(&device->download, status[i].busy.download, now);
    }
}

void load_sample(struct load *load, const struct metrics *metrics, int64_t now)
{
    sample_running(load, metrics, now);
    rate_counter_sample(&load->own, (uint64_t)processor_time_own_ns(), now);
    rate_counter_sample(&load->all, (uint64_t)processor_time_all_ns(), now);
    sample_devices(load, metrics->devices, now);
    plan_memory(load, metrics);
}

// Returns -1 if nothing can be busy. The times of kernels side by side may sum up to more than 1.
static double share(const struct rate_counter *counter, bool has)
{
    return has ? fmin(rate_counter_rate(counter) / 1e9, 1) : -1;
}

static struct device_shares shares_of(const struct device_load *device)
{
    const struct device_status *status = &device->status;
    return (struct device_shares){
        .number = status->number,
        .nvdec = share(&device->nvdec, status->has_nvdec),
        .upload = share(&device->upload, status->has_busy),
        .kernel = share(&device->kernel, status->has_busy),
        .download = share(&device->download, status->has_busy),
    };
}

static json_t *share_json(double share)
{
    return share >= 0 ? json_real(share) : json_null();
}

// --- devices

// As nvidia-smi prints it; NULL: unknown.
static const char *uuid_text(const uint8_t uuid[16], char to[48])
{
    static const uint8_t none[16];
    size_t used = 0;
    if (memcmp(uuid, none, sizeof none) == 0)
        return NULL;
    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(to + used, 48 - used, "%s%02x",
                                 i == 0                                  ? "GPU-"
                                 : i == 4 || i == 6 || i == 8 || i == 10 ? "-"
                                                                         : "",
                                 uuid[i]);
    return to;
}

static json_t *bytes_json(size_t bytes)
{
    return bytes == SIZE_MAX ? json_null() : json_integer((json_int_t)bytes);
}

static json_t *device_json(const struct device_load *device)
{
    const struct device_status *status = &device->status;
    const struct device_shares shares = shares_of(device);
    char uuid[48];
    return json_pack("{s:o, s:s?, s:s, s:b, s:i, s:I, s:o, s:o, s:o, s:o, s:o}", "number",
                     status->number >= 0 ? json_integer(status->number) : json_null(), "uuid",
                     uuid_text(status->uuid, uuid), "description", status->description, "works",
                     status->works, "cameras", status->cameras, "memory_bytes",
                     (json_int_t)status->reserved, "memory_limit_bytes", bytes_json(status->limit),
                     "nvdec", share_json(shares.nvdec), "upload", share_json(shares.upload),
                     "kernel", share_json(shares.kernel), "download", share_json(shares.download));
}

json_t *status_devices_json(const struct load *load)
{
    json_t *list = json_array();
    for (int i = 0; list && i < load->n_devices; i++)
        if (json_array_append_new(list, device_json(&load->device[i])) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

// --- cameras

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

// Counts memory that the cameras need, but do not use yet, as used.
static double host_left(double planned)
{
    const double resident = (double)resident_bytes();
    const double box = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double available = (double)host_memory_available();
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

static struct bottleneck_facts facts_of(const struct load *load, const struct metrics *metrics)
{
    const int64_t now = monotonic_ns();
    struct bottleneck_facts facts = {
        .running = count_running(metrics),
        .running_mean = rate_counter_rate(&load->running) / 1e9,
        .processors = processor_time_limit(),
        .used = rate_counter_rate(&load->own) / 1e9,
        .busy = rate_counter_rate(&load->all) / 1e9,
    };
    for (int i = 0; i < load->n_devices; i++)
        if (load->device[i].status.works)
            facts.device[facts.n_devices++] = shares_of(&load->device[i]);
    for (int i = 0; i < metrics->n_cameras; i++)
        add_camera(&facts, metrics->cameras[i], now);
    add_memory(&facts, load, metrics->n_cameras);
    return facts;
}

int status_more_cameras(const struct load *load, const struct metrics *metrics)
{
    const struct bottleneck_facts facts = facts_of(load, metrics);
    return bottleneck_judge(&facts).more;
}

json_t *status_bottleneck_json(const struct load *load, const struct metrics *metrics)
{
    const struct bottleneck_facts facts = facts_of(load, metrics);
    struct bottleneck bottleneck = bottleneck_judge(&facts);
    const struct device_shares busiest = bottleneck_busiest_shares(&facts);
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o}", "leg",
        bottleneck_stage_name(bottleneck.stage), "device",
        bottleneck.device >= 0 ? json_integer(bottleneck.device) : json_null(), "share",
        bottleneck.share > 0 ? json_real(bottleneck.share) : json_null(), "cameras_more",
        bottleneck.more >= 0 ? json_integer(bottleneck.more) : json_null(), "ends_first",
        bottleneck.ends_first, "cpu", facts.busy > 0 ? json_real(facts.busy) : json_null(), "nvdec",
        share_json(busiest.nvdec), "upload", share_json(busiest.upload), "kernel",
        share_json(busiest.kernel), "download", share_json(busiest.download));
}
