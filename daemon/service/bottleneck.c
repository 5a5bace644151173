#include "daemon/service/bottleneck.h"

#include <math.h>
#include <stddef.h>

static const double BUSY = 0.9;      // of processors, decoders and threads: no more goes in
static const double WAITING = 0.4;   // of a thread, for somebody to take its frames
static const double OVERFLOW = 0.01; // of frames that clients left lying
// A smaller share is extrapolated to nothing: it is mostly what framed takes without cameras, and
// noise.
static const double LEAST = 0.01;
static const double NVDEC_LEAST = 0.5; // of the places inside NVDEC
enum { MORE_MAX = 1024 };

const char *bottleneck_stage_name(enum bottleneck_stage leg)
{
    static const char *const names[] = {
        [BOTTLENECK_UNKNOWN] = "unknown",   [BOTTLENECK_NETWORK] = "network",
        [BOTTLENECK_CPU] = "cpu",           [BOTTLENECK_DECODER] = "decoder",
        [BOTTLENECK_UPLOAD] = "upload",     [BOTTLENECK_KERNEL] = "kernel",
        [BOTTLENECK_DOWNLOAD] = "download", [BOTTLENECK_CLIENT] = "client",
    };
    return names[leg];
}

static double cpu_share(const struct bottleneck_facts *facts)
{
    double busiest = fmax(facts->used, facts->busy);
    return facts->processors > 0 ? fmin(busiest / facts->processors, 1) : 0;
}

// The busiest leg of the device; on the cpu the one that there is.
static struct bottleneck busiest(const struct bottleneck_facts *facts)
{
    struct bottleneck leg = {.leg = BOTTLENECK_KERNEL, .share = facts->kernel};
    if (facts->upload > leg.share)
        leg = (struct bottleneck){.leg = BOTTLENECK_UPLOAD, .share = facts->upload};
    if (facts->download > leg.share)
        leg = (struct bottleneck){.leg = BOTTLENECK_DOWNLOAD, .share = facts->download};
    return leg;
}

// In the order in which one is the reason of the other: short processors make all else wait, and
// who waits for the backend is not waited for.
static struct bottleneck find_leg(const struct bottleneck_facts *facts)
{
    const double overflow = facts->offered > 0 ? facts->overflow / facts->offered : 0;
    const struct bottleneck device = busiest(facts);
    if (facts->running == 0)
        return (struct bottleneck){.leg = BOTTLENECK_UNKNOWN};
    if (cpu_share(facts) >= BUSY)
        return (struct bottleneck){.leg = BOTTLENECK_CPU, .share = cpu_share(facts)};
    if (facts->nvdec >= BUSY)
        return (struct bottleneck){.leg = BOTTLENECK_DECODER, .share = facts->nvdec};
    if (device.share >= BUSY)
        return device;
    if (facts->submit >= WAITING && facts->waits)
        return (struct bottleneck){.leg = BOTTLENECK_CLIENT, .share = facts->submit};
    if (facts->submit >= WAITING)
        return (struct bottleneck){.leg = device.leg, .share = facts->submit};
    if (overflow >= OVERFLOW)
        return (struct bottleneck){.leg = BOTTLENECK_CLIENT, .share = fmin(overflow, 1)};
    if (facts->decode >= BUSY)
        return (struct bottleneck){.leg = BOTTLENECK_DECODER, .share = facts->decode};
    return (struct bottleneck){.leg = BOTTLENECK_NETWORK};
}

// So many more cameras that one of them needs `need` of the `left`.
static void add_room(struct bottleneck *bound, double need, double left, const char *what)
{
    double more = floor(fmax(left, 0) / need);
    int n = more < MORE_MAX ? (int)more : MORE_MAX;
    if (bound->more >= 0 && bound->more <= n)
        return;
    bound->more = n;
    bound->end = what;
}

struct room {
    struct bottleneck *bound;
    double cameras; // that the shares are of
    double surely;  // cameras for which all that cannot be extrapolated has room anyhow
};

// `share` is the cameras' own, `taken` includes what others take.
static void add_share(struct room *room, double share, double taken, const char *what)
{
    if (share < 0)
        return;
    if (share >= LEAST)
        add_room(room->bound, share / room->cameras, BUSY - taken, what);
    else
        room->surely = fmin(room->surely, fmax(BUSY - taken, 0) / (LEAST / room->cameras));
}

// One that decodes alone takes few of the places and all of an engine: only where threads get in
// each other's way do places tell of what NVDEC can do.
static void add_nvdec(struct room *room, double share)
{
    if (share >= NVDEC_LEAST)
        add_share(room, share, share, "nvdec");
    else if (share > 0)
        room->surely = 0;
}

static void judge_room(struct bottleneck *bound, const struct bottleneck_facts *facts)
{
    struct room room = {.bound = bound, .cameras = facts->running_mean, .surely = INFINITY};
    const bool stuck = facts->waits && facts->submit >= BUSY;
    bound->more = -1;
    if (facts->running == 0 || facts->running_mean <= 0 || stuck)
        return;
    if (facts->processors > 0)
        add_share(&room, facts->used / facts->processors, cpu_share(facts), "cpu");
    add_nvdec(&room, facts->nvdec);
    add_share(&room, facts->upload, facts->upload, "upload");
    add_share(&room, facts->kernel, facts->kernel, "kernel");
    add_share(&room, facts->download, facts->download, "download");
    if (facts->memory_need > 0)
        add_room(bound, facts->memory_need, facts->memory_left, "memory");
    if (facts->device_need > 0)
        add_room(bound, facts->device_need, facts->device_left, "device_memory");
    if (bound->more > room.surely) {
        bound->more = -1;
        bound->end = NULL;
    }
}

struct bottleneck bottleneck_judge(const struct bottleneck_facts *facts)
{
    struct bottleneck bound = find_leg(facts);
    judge_room(&bound, facts);
    return bound;
}
