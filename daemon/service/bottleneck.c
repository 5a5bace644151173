#include "daemon/service/bottleneck.h"

#include <math.h>
#include <stddef.h>

static const double BUSY = 0.9;      // of processors, decoders and threads: no more goes in
static const double WAITING = 0.4;   // of a thread, for the backend or a client
static const double OVERFLOW = 0.01; // of frames that clients did not take
// Smaller shares are not extrapolated: they are mostly noise, and what framed takes without
// cameras.
static const double LEAST = 0.01;
static const double NVDEC_LEAST = 0.5; // of the places inside NVDEC
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

// The busiest stage of the device; on the CPU the only one.
static struct bottleneck busiest_device_stage(const struct bottleneck_facts *facts)
{
    struct bottleneck busiest = {.stage = BOTTLENECK_KERNEL, .share = facts->kernel};
    if (facts->upload > busiest.share)
        busiest = (struct bottleneck){.stage = BOTTLENECK_UPLOAD, .share = facts->upload};
    if (facts->download > busiest.share)
        busiest = (struct bottleneck){.stage = BOTTLENECK_DOWNLOAD, .share = facts->download};
    return busiest;
}

// A cause comes before its effects: when processors are short, everything else waits, and a thread
// that waits for the backend delays others.
static struct bottleneck find_stage(const struct bottleneck_facts *facts)
{
    const double overflow = facts->offered > 0 ? facts->overflow / facts->offered : 0;
    const struct bottleneck device = busiest_device_stage(facts);
    if (facts->running == 0)
        return (struct bottleneck){.stage = BOTTLENECK_UNKNOWN};
    if (cpu_share(facts) >= BUSY)
        return (struct bottleneck){.stage = BOTTLENECK_CPU, .share = cpu_share(facts)};
    if (facts->nvdec >= BUSY)
        return (struct bottleneck){.stage = BOTTLENECK_DECODER, .share = facts->nvdec};
    if (device.share >= BUSY)
        return device;
    if (facts->submit >= WAITING && facts->waits)
        return (struct bottleneck){.stage = BOTTLENECK_CLIENT, .share = facts->submit};
    if (facts->submit >= WAITING)
        return (struct bottleneck){.stage = device.stage, .share = facts->submit};
    if (overflow >= OVERFLOW)
        return (struct bottleneck){.stage = BOTTLENECK_CLIENT, .share = fmin(overflow, 1)};
    if (facts->decode >= BUSY)
        return (struct bottleneck){.stage = BOTTLENECK_DECODER, .share = facts->decode};
    return (struct bottleneck){.stage = BOTTLENECK_NETWORK};
}

// There is room for as many more cameras as `left` holds times what one of them needs.
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
    double cameras; // that the shares are of
    double surely;  // cameras for which all that cannot be extrapolated has room anyhow
};

// `share` is the cameras' own, `taken` includes what others take.
static void add_share(struct room *room, double share, double taken, const char *what)
{
    if (share < 0)
        return;
    if (share >= LEAST)
        add_room(room->bottleneck, share / room->cameras, BUSY - taken, what);
    else
        room->surely = fmin(room->surely, fmax(BUSY - taken, 0) / (LEAST / room->cameras));
}

// A thread that decodes alone takes few of the places and all of an engine of NVDEC: the places say
// what NVDEC can do only when threads wait for each other.
static void add_nvdec(struct room *room, double share)
{
    if (share >= NVDEC_LEAST)
        add_share(room, share, share, "nvdec");
    else if (share > 0)
        room->surely = 0;
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
    add_nvdec(&room, facts->nvdec);
    add_share(&room, facts->upload, facts->upload, "upload");
    add_share(&room, facts->kernel, facts->kernel, "kernel");
    add_share(&room, facts->download, facts->download, "download");
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
