#include "daemon/service/bound.h"

#include <math.h>
#include <stddef.h>

static const double BUSY = 0.9;      // of processors, decoders and threads: no more goes in
static const double WAITING = 0.4;   // of a thread, for somebody to take its frames
static const double OVERFLOW = 0.01; // of frames that clients left lying
enum { MORE_MAX = 1024 };

const char *bound_leg_name(enum bound_leg leg)
{
    static const char *const names[] = {
        [BOUND_UNKNOWN] = "unknown",   [BOUND_NETWORK] = "network", [BOUND_CPU] = "cpu",
        [BOUND_DECODER] = "decoder",   [BOUND_UPLOAD] = "upload",   [BOUND_KERNEL] = "kernel",
        [BOUND_DOWNLOAD] = "download", [BOUND_CLIENT] = "client",
    };
    return names[leg];
}

static double cpu_share(const struct bound_facts *facts)
{
    double busiest = fmax(facts->used, facts->busy);
    return facts->processors > 0 ? fmin(busiest / facts->processors, 1) : 0;
}

// The busiest leg of the device; on the cpu the one that there is.
static struct bound busiest(const struct bound_facts *facts)
{
    struct bound leg = {.leg = BOUND_KERNEL, .share = facts->kernel};
    if (facts->upload > leg.share)
        leg = (struct bound){.leg = BOUND_UPLOAD, .share = facts->upload};
    if (facts->download > leg.share)
        leg = (struct bound){.leg = BOUND_DOWNLOAD, .share = facts->download};
    return leg;
}

// In the order in which one is the reason of the other: short processors make all else wait, and
// who waits for the backend is not waited for.
static struct bound find_leg(const struct bound_facts *facts)
{
    const double overflow = facts->offered > 0 ? facts->overflow / facts->offered : 0;
    const struct bound device = busiest(facts);
    if (facts->running == 0)
        return (struct bound){.leg = BOUND_UNKNOWN};
    if (cpu_share(facts) >= BUSY)
        return (struct bound){.leg = BOUND_CPU, .share = cpu_share(facts)};
    if (facts->nvdec >= BUSY)
        return (struct bound){.leg = BOUND_DECODER, .share = facts->nvdec};
    if (device.share >= BUSY)
        return device;
    if (facts->submit >= WAITING && facts->waits)
        return (struct bound){.leg = BOUND_CLIENT, .share = facts->submit};
    if (facts->submit >= WAITING)
        return (struct bound){.leg = device.leg, .share = facts->submit};
    if (overflow >= OVERFLOW)
        return (struct bound){.leg = BOUND_CLIENT, .share = fmin(overflow, 1)};
    if (facts->decode >= BUSY)
        return (struct bound){.leg = BOUND_DECODER, .share = facts->decode};
    return (struct bound){.leg = BOUND_NETWORK};
}

// Each takes as much more of what is left as each of the present ones has.
static void add_room(struct bound *bound, const struct bound_facts *facts, double used, double left,
                     const char *what)
{
    double more = floor(fmax(left, 0) / (used / facts->running));
    int n = more < MORE_MAX ? (int)more : MORE_MAX;
    if (used <= 0 || (bound->more >= 0 && bound->more <= n))
        return;
    bound->more = n;
    bound->end = what;
}

struct bound bound_judge(const struct bound_facts *facts)
{
    struct bound bound = find_leg(facts);
    bound.more = -1;
    if (facts->running == 0)
        return bound;
    add_room(&bound, facts, facts->used, BUSY * facts->processors - fmax(facts->used, facts->busy),
             "cpu");
    add_room(&bound, facts, facts->nvdec, BUSY - facts->nvdec, "nvdec");
    add_room(&bound, facts, facts->upload, BUSY - facts->upload, "upload");
    add_room(&bound, facts, facts->kernel, BUSY - facts->kernel, "kernel");
    add_room(&bound, facts, facts->download, BUSY - facts->download, "download");
    return bound;
}
