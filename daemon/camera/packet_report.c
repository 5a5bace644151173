#include "daemon/camera/packet_report.h"

#include <stdlib.h>

#include "daemon/input/demux.h"

// Pictures that a mean covers, with fading weights: some seconds.
enum { MEAN_PICTURES = 64 };

static int64_t load(const _Atomic int64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

static void store(_Atomic int64_t *to, int64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

void packet_report_connect(struct packet_report *report)
{
    report->has_key = false;
    atomic_store(&report->has_clock, false);
}

// A file that restarts goes back in time: the distance of its keyframes is unknown then.
static void read_keyframe(struct packet_report *report, int64_t pts_ns)
{
    if (report->has_key && pts_ns > report->key_pts_ns)
        store(&report->keyframe_ns, pts_ns - report->key_pts_ns);
    report->has_key = pts_ns != INT64_MIN;
    report->key_pts_ns = pts_ns;
}

static void read_clock(struct packet_report *report, int64_t off_ns)
{
    if (!atomic_load_explicit(&report->has_clock, memory_order_relaxed)) {
        store(&report->offset_ns, off_ns);
        store(&report->jitter_ns, 0);
        atomic_store(&report->has_clock, true);
        return;
    }
    const int64_t more_ns = off_ns - load(&report->offset_ns), jitter_ns = load(&report->jitter_ns);
    store(&report->offset_ns, load(&report->offset_ns) + more_ns / MEAN_PICTURES);
    store(&report->jitter_ns, jitter_ns + (llabs(more_ns) - jitter_ns) / MEAN_PICTURES);
}

void packet_report_read(struct packet_report *report, const struct packet *packet, int64_t came_ns)
{
    atomic_fetch_add_explicit(&report->bytes, packet->bytes, memory_order_relaxed);
    if (packet->keyframe)
        read_keyframe(report, packet->pts_ns);
    if (packet->capture_clock)
        read_clock(report, packet->capture_ns - came_ns);
}
