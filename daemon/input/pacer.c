#include "daemon/input/pacer.h"

#include <errno.h>
#include <time.h>

#include "daemon/base/clock.h"

static const int64_t SLICE_NS = 50000000; // how long a sleep may overlook *stop
static const int64_t LATE_NS = 100000000; // longest delay to catch up with

static int sleep_until(int64_t due_ns, const _Atomic bool *stop)
{
    for (int64_t now; (now = monotonic_ns()) < due_ns;) {
        if (atomic_load(stop))
            return -ECANCELED;
        int64_t until = due_ns - now < SLICE_NS ? due_ns : now + SLICE_NS;
        struct timespec at = {until / 1000000000, until % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
    return 0;
}

// A pause of more than PACER_GAP_NS in the stream is a cut.
int pacer_wait(struct pacer *pacer, int64_t ts, const _Atomic bool *stop)
{
    if (!pacer->origin_ns || ts < pacer->last_ts || ts - pacer->last_ts > PACER_GAP_NS) {
        pacer->origin_ns = monotonic_ns();
        pacer->origin_ts = ts;
    }
    pacer->last_ts = ts;
    const int64_t due_ns = pacer->origin_ns + (ts - pacer->origin_ts);
    const int64_t late_ns = monotonic_ns() - due_ns;
    if (late_ns > LATE_NS)
        pacer->origin_ns += late_ns;
    return sleep_until(due_ns, stop);
}
