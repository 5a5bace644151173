#include "daemon/service/bottleneck.h"

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/machine.h"
#include "daemon/supervisor/reload.h"

static const double BUSY = 0.9;    // share of processors, decoders and threads that counts as full
static const double WAITING = 0.4; // share of a thread's time, waiting for the backend or a client
static const double OVERFLOW = 0.01; // share of frames that clients did not take
// Smaller shares are not extrapolated: they are mostly noise and framed's use without cameras.
static const double LEAST = 0.01;
static const double NVDEC_LEAST = 0.5; // share of the places inside NVDEC
enum { MORE_MAX = 1024 };

const char *bottleneck_stage_name(enum bottleneck_stage stage)
{
    static const char *const names[] = {
        [BOTTLENECK_UNKNOWN] = "unknown",   [BOTTLENECK_NETWORK] = "network",
        [BOTTLENECK_CPU] = "cpu",           [BOTTLENECK_DECODER] = "decoder",
        [BOTTLENECK_UPLOAD] = "upload",     [BOTTLENECK_KERNEL] = "kernel",
        [BOTTLENECK_DOWNLOAD] = "download", [BOTTLENECK_CLIENT] = "client",
    };
    return names[stage];
}

static double cpu_share(const struct bottleneck_facts *facts)
{
    double busiest = fmax(facts->used, facts->busy);
    return facts->processors > 0 ? fmin(busiest / facts->processors, 1) : 0;
}

struct device_shares bottleneck_busiest_shares(const struct bottleneck_facts *facts)
{
    struct device_shares busiest = {-1, -1, -1, -1, -1};
    for (int i = 0; i < facts->n_devices; i++) {
        const struct device_shares *device = &facts->device[i];
        busiest.nvdec = fmax(busiest.nvdec, device->nvdec);
        busiest.upload = fmax(busiest.upload, device->upload);
        busiest.kernel = fmax(busiest.kernel, device->kernel);
        busiest.download = fmax(busiest.download, device->download);
    }
    return busiest;
}

static void keep_busier(struct bottleneck *busiest, enum bottleneck_stage stage, int device,
                        double share)
{
    if (share > busiest->share)
        *busiest = (struct bottleneck){.stage = stage, .device = device, .share = share};
}

static struct bottleneck busiest_nvdec(const struct bottleneck_facts *facts)
{
    struct bottleneck busiest = {.stage = BOTTLENECK_DECODER, .device = -1, .share = -1};
    for (int i = 0; i < facts->n_devices; i++)
        keep_busier(&busiest, BOTTLENECK_DECODER, facts->device[i].number, facts->device[i].nvdec);
    return busiest;
}

// Returns the busiest stage of any device; the CPU has only one stage.
static struct bottleneck busiest_device_stage(const struct bottleneck_facts *facts)
{
    struct bottleneck busiest = {.stage = BOTTLENECK_KERNEL, .device = -1, .share = -1};
    for (int i = 0; i < facts->n_devices; i++) {
        const struct device_shares *device = &facts->device[i];
        keep_busier(&busiest, BOTTLENECK_KERNEL, device->number, device->kernel);
        keep_busier(&busiest, BOTTLENECK_UPLOAD, device->number, device->upload);
        keep_busier(&busiest, BOTTLENECK_DOWNLOAD, device->number, device->download);
    }
    return busiest;
}

static struct bottleneck not_of_a_device(enum bottleneck_stage stage, double share)
{
    return (struct bottleneck){.stage = stage, .device = -1, .share = share};
}

// Tests causes before their effects: when processors are short, everything else waits, and a thread
// that waits for the backend delays others.
static struct bottleneck find_stage(const struct bottleneck_facts *facts)
{
    const double overflow = facts->offered > 0 ? facts->overflow / facts->offered : 0;
    const struct bottleneck nvdec = busiest_nvdec(facts), device = busiest_device_stage(facts);
    if (facts->running == 0)
        return not_of_a_device(BOTTLENECK_UNKNOWN, 0);
    if (cpu_share(facts) >= BUSY)
        return not_of_a_device(BOTTLENECK_CPU, cpu_share(facts));
    if (nvdec.share >= BUSY)
        return nvdec;
    if (device.share >= BUSY)
        return device;
    if (facts->submit >= WAITING && facts->waits)
        return not_of_a_device(BOTTLENECK_CLIENT, facts->submit);
    if (facts->submit >= WAITING)
        return (struct bottleneck){
            .stage = device.stage, .device = device.device, .share = facts->submit};
    if (overflow >= OVERFLOW)
        return not_of_a_device(BOTTLENECK_CLIENT, fmin(overflow, 1));
    if (facts->decode >= BUSY)
        return not_of_a_device(BOTTLENECK_DECODER, facts->decode);
    return not_of_a_device(BOTTLENECK_NETWORK, 0);
}

// Limits the room to the cameras that fit into `left` if each takes `need`.
static void add_room(struct bottleneck *bottleneck, double need, double left, const char *what)
{
    double more = floor(fmax(left, 0) / need);
    int n = more < MORE_MAX ? (int)more : MORE_MAX;
    if (bottleneck->more >= 0 && bottleneck->more <= n)
        return;
    bottleneck->more = n;
    bottleneck->ends_first = what;
}

struct room {
    struct bottleneck *bottleneck;
    double cameras; // number that the shares come from
    double surely;  // cameras with enough room of everything that cannot be extrapolated
};

// `share` is used by the cameras, `taken` by everybody.
static void add_share(struct room *room, double share, double taken, const char *what)
{
    if (share < 0)
        return;
    if (share >= LEAST)
        add_room(room->bottleneck, share / room->cameras, BUSY - taken, what);
    else
        room->surely = fmin(room->surely, fmax(BUSY - taken, 0) / (LEAST / room->cameras));
}

// A thread that decodes alone takes few of the places but a whole engine of NVDEC: the places show
// NVDEC's load only when threads wait for each other.
static void add_nvdec(struct room *room, double share)
{
    if (share >= NVDEC_LEAST)
        add_share(room, share, share, "nvdec");
    else if (share > 0)
        room->surely = 0;
}

// Returns the mean over the devices that have such a share, since added cameras go to all of them;
// -1: none has.
static double mean_share(const struct bottleneck_facts *facts, size_t offset)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < facts->n_devices; i++) {
        const double share = *(const double *)((const char *)&facts->device[i] + offset);
        sum += fmax(share, 0);
        n += share >= 0;
    }
    return n > 0 ? sum / n : -1;
}

static void add_devices(struct room *room, const struct bottleneck_facts *facts)
{
    static const struct {
        size_t offset;
        const char *what;
    } kinds[] = {{offsetof(struct device_shares, upload), "upload"},
                 {offsetof(struct device_shares, kernel), "kernel"},
                 {offsetof(struct device_shares, download), "download"}};
    add_nvdec(room, mean_share(facts, offsetof(struct device_shares, nvdec)));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const double share = mean_share(facts, kinds[i].offset);
        add_share(room, share, share, kinds[i].what);
    }
}

static void judge_room(struct bottleneck *bottleneck, const struct bottleneck_facts *facts)
{
    struct room room = {
        .bottleneck = bottleneck, .cameras = facts->running_mean, .surely = INFINITY};
    const bool stuck = facts->waits && facts->submit >= BUSY;
    bottleneck->more = -1;
    if (facts->running == 0 || facts->running_mean <= 0 || stuck)
        return;
    if (facts->processors > 0)
        add_share(&room, facts->used / facts->processors, cpu_share(facts), "cpu");
    add_devices(&room, facts);
    if (facts->memory_need > 0)
        add_room(bottleneck, facts->memory_need, facts->memory_left, "memory");
    if (facts->device_need > 0)
        add_room(bottleneck, facts->device_need, facts->device_left, "device_memory");
    if (bottleneck->more > room.surely) {
        bottleneck->more = -1;
        bottleneck->ends_first = NULL;
    }
}

struct bottleneck bottleneck_judge(const struct bottleneck_facts *facts)
{
    struct bottleneck bottleneck = find_stage(facts);
    judge_room(&bottleneck, facts);
    return bottleneck;
}

// --- the load

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
static double busy_share(const struct rate_counter *counter, bool has)
{
    return has ? fmin(rate_counter_rate(counter) / 1e9, 1) : -1;
}

static struct device_shares shares_of(const struct device_load *device)
{
    const struct device_status *status = &device->status;
    return (struct device_shares){
        .number = status->number,
        .nvdec = busy_share(&device->nvdec, status->has_nvdec),
        .upload = busy_share(&device->upload, status->has_busy),
        .kernel = busy_share(&device->kernel, status->has_busy),
        .download = busy_share(&device->download, status->has_busy),
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

json_t *load_devices_json(const struct load *load)
{
    json_t *list = json_array();
    for (int i = 0; list && i < load->n_devices; i++)
        if (json_array_append_new(list, device_json(&load->device[i])) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

// --- cameras of the load

// A wait shorter than a sample is in the samples soon enough.
static int64_t submit_so_far(const struct camera *camera, int64_t now)
{
    int64_t since = stage_since_ns(&camera->report.stages, STAGE_SUBMIT);
    return since && now - since > LOAD_SAMPLE_MS * INT64_C(1000000) ? now - since : 0;
}

double load_camera_share(const struct camera *camera, enum stage stage, int64_t now)
{
    double share = rate_counter_rate(&camera->spent[stage]) / 1e9;
    if (stage == STAGE_SUBMIT)
        share += (double)submit_so_far(camera, now) / RATE_COUNTER_NS;
    return fmin(share, 1);
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
    double submit = load_camera_share(camera, STAGE_SUBMIT, now);
    facts->decode = fmax(facts->decode, load_camera_share(camera, STAGE_DECODE, now));
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

int load_more_cameras(const struct load *load, const struct metrics *metrics)
{
    const struct bottleneck_facts facts = facts_of(load, metrics);
    return bottleneck_judge(&facts).more;
}

json_t *load_bottleneck_json(const struct load *load, const struct metrics *metrics)
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
