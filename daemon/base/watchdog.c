#include "daemon/base/watchdog.h"

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/clock.h"

void watchdog_begin(struct watchdog *heartbeat, enum step step, int64_t ns)
{
    atomic_store_explicit(&heartbeat->step, (int)step, memory_order_relaxed);
    atomic_store_explicit(&heartbeat->due_ns, monotonic_ns() + ns, memory_order_relaxed);
}

void watchdog_rest(struct watchdog *heartbeat)
{
    atomic_store_explicit(&heartbeat->due_ns, 0, memory_order_relaxed);
}

// The time is there before the job, and the next time before it goes.
void watchdog_job_begins(struct watchdog *heartbeat)
{
    if (atomic_load(&heartbeat->jobs) == 0)
        atomic_store(&heartbeat->job_ns, monotonic_ns());
    atomic_fetch_add(&heartbeat->jobs, 1);
}

void watchdog_job_ends(struct watchdog *heartbeat, int64_t now_ns)
{
    atomic_store(&heartbeat->job_ns, now_ns);
    atomic_fetch_sub(&heartbeat->jobs, 1);
}

static bool backend_hangs(const struct watchdog *heartbeat, int64_t patience_ns)
{
    return atomic_load(&heartbeat->jobs) > 0 &&
           monotonic_ns() - atomic_load(&heartbeat->job_ns) > patience_ns;
}

const char *watchdog_stuck(const struct watchdog *heartbeat, int64_t patience_ns)
{
    static const char *const names[] = {
        [STEP_CONNECTING] = "connecting",
        [STEP_READING] = "reading",
        [STEP_DECODING] = "decoding",
        [STEP_SUBMITTING] = "handing pictures over",
        [STEP_MOVING] = "changing sides",
        [STEP_CLOSING] = "hanging up",
        [STEP_PAUSING] = "waiting for its next try",
    };
    if (backend_hangs(heartbeat, patience_ns))
        return "waiting for the backend";
    int64_t due_ns = atomic_load_explicit(&heartbeat->due_ns, memory_order_relaxed);
    if (due_ns == 0 || monotonic_ns() - due_ns <= patience_ns)
        return NULL;
    return names[atomic_load_explicit(&heartbeat->step, memory_order_relaxed)];
}
