#include "daemon/base/stage_watch.h"

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/clock.h"

void stage_enter(struct stage_watch *watch, enum stage stage, int64_t limit_ns)
{
    if (!watch)
        return;
    const int64_t now_ns = monotonic_ns();
    const int before = atomic_load(&watch->stage);
    atomic_fetch_add(&watch->spent_ns[before], (uint64_t)(now_ns - watch->counted_ns));
    watch->counted_ns = now_ns;
    if (before != (int)stage) {
        atomic_store(&watch->since_ns, now_ns);
        atomic_store(&watch->stage, (int)stage);
    }
    atomic_store(&watch->due_ns, limit_ns == STAGE_NO_LIMIT ? 0 : now_ns + limit_ns);
}

int64_t stage_since_ns(const struct stage_watch *watch, enum stage stage)
{
    const bool inside = atomic_load(&watch->stage) == (int)stage;
    return inside ? atomic_load(&watch->since_ns) : 0;
}

// The time is stored before the job counts, and before it stops counting: a reader that sees a job
// sees its time.
void stage_job_begins(struct stage_watch *watch)
{
    if (atomic_load(&watch->jobs) == 0)
        atomic_store(&watch->job_ns, monotonic_ns());
    atomic_fetch_add(&watch->jobs, 1);
}

void stage_job_ends(struct stage_watch *watch, int64_t now_ns)
{
    atomic_store(&watch->job_ns, now_ns);
    atomic_fetch_sub(&watch->jobs, 1);
}

const char *stage_hangs(const struct stage_watch *watch, int64_t patience_ns)
{
    static const char *const names[STAGES] = {
        [STAGE_IDLE] = "idle",
        [STAGE_CONNECT] = "connecting",
        [STAGE_READ] = "reading",
        [STAGE_DECODE] = "decoding",
        [STAGE_ANALYSE] = "analysing a picture",
        [STAGE_SUBMIT] = "handing pictures over",
        [STAGE_CHANGE_DEVICE] = "changing devices",
        [STAGE_CLOSE] = "hanging up",
        [STAGE_PAUSE] = "waiting for its next try",
    };
    const int64_t now_ns = monotonic_ns();
    if (atomic_load(&watch->jobs) > 0 && now_ns - atomic_load(&watch->job_ns) > patience_ns)
        return "waiting for the backend";
    const int64_t due_ns = atomic_load(&watch->due_ns);
    const bool hangs = due_ns > 0 && now_ns - due_ns > patience_ns;
    return hangs ? names[atomic_load(&watch->stage)] : NULL;
}
