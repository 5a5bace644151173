#include "daemon/service/bottleneck.h"

#include <math.h>
#include <stddef.h>

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
