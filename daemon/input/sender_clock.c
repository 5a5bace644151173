#include "daemon/input/sender_clock.h"

static const int64_t SAME_NS = 1000000; // less than any frame's duration, more than rounding

// If libavformat assembles pictures from RTP payloads, a picture is complete only when the next one
// begins, and the time that comes with it belongs to the next one. The first report shows whether
// that is so, because start_ns comes from it too; later the two clocks drift apart.
int64_t sender_clock_read(struct sender_clock *clock, int64_t report_ns, int64_t start_ns,
                          int64_t pts_ns)
{
    int64_t own_ns = clock->has_next ? clock->next_ns : INT64_MIN;
    clock->has_next = false;
    if (report_ns == INT64_MIN)
        return own_ns;
    if (!clock->seen) {
        clock->seen = true;
        clock->is_next = report_ns - (start_ns + pts_ns) > SAME_NS;
        own_ns = start_ns + pts_ns;
    }
    if (!clock->is_next)
        return report_ns;
    clock->has_next = true;
    clock->next_ns = report_ns;
    return own_ns;
}
