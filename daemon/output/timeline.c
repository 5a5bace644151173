#include "daemon/output/timeline.h"

#include <stdlib.h>
#include <string.h>

static const int64_t INTERVAL_NS = 40000000;            // until the stream shows its own
static const int64_t JUMP_NS = 5 * INT64_C(1000000000); // larger deviation from arrival: a restart

// Uses the arrival time if the camera's own time is missing or restarts.
static int64_t continuous_pts(struct timeline *line, int64_t pts_ns, int64_t received_ns)
{
    const int64_t since_ns = received_ns - line->received_ns;
    const int64_t expected = line->pts_ns + (since_ns > 0 ? since_ns : 1);
    const bool unknown = pts_ns == INT64_MIN;
    if (line->begun && (unknown || llabs(pts_ns - expected) > JUMP_NS)) {
        line->shift_ns += unknown ? 0 : expected - pts_ns;
        pts_ns = unknown ? expected : pts_ns;
    } else if (unknown) {
        pts_ns = 0;
    }
    line->begun = true;
    line->pts_ns = pts_ns;
    line->received_ns = received_ns;
    return pts_ns + line->shift_ns;
}

static void insert_pending(struct timeline *line, int64_t pts)
{
    int at = line->n++;
    while (at > 0 && line->pending[at - 1] > pts) {
        line->pending[at] = line->pending[at - 1];
        at--;
    }
    line->pending[at] = pts;
}

void timeline_begin(struct timeline *line, int delay)
{
    if (delay > line->delay)
        line->delay = delay < TIMELINE_DELAY_MAX ? delay : TIMELINE_DELAY_MAX;
    line->n = 0;
    line->last_dts = INT64_MIN;
}

// The dts is the lowest pts not yet used, with `delay` pts held back: if pictures are reordered by
// at most `delay`, none is shown before it is decoded.
struct packet_times timeline_next(struct timeline *line, int64_t pts_ns, int64_t received_ns)
{
    struct packet_times times = {.pts = continuous_pts(line, pts_ns, received_ns)};
    const int64_t interval = line->interval_ns > 0 ? line->interval_ns : INTERVAL_NS;
    if (line->n == 0)
        for (int i = line->delay; i > 0; i--)
            line->pending[line->n++] = times.pts - i * interval;
    insert_pending(line, times.pts);
    times.dts = line->pending[0];
    if (line->last_dts != INT64_MIN && times.pts <= line->last_dts) {
        // Reordered by more than `delay`: this one is shown slightly late, later ones on time.
        times.pts = times.dts = line->last_dts + 1;
        line->delay += line->delay < TIMELINE_DELAY_MAX;
    } else if (line->last_dts != INT64_MIN && times.dts <= line->last_dts) {
        times.dts = line->last_dts + 1;
    } else if (line->last_dts != INT64_MIN && times.dts - line->last_dts < JUMP_NS) {
        line->interval_ns = times.dts - line->last_dts;
    }
    if (line->n > line->delay)
        memmove(line->pending, line->pending + 1, (size_t)--line->n * sizeof line->pending[0]);
    line->last_dts = times.dts;
    return times;
}
