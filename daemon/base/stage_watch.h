// What the thread of one camera is at: the stage, since when, and by when it means to leave it.
// From this the watchdog tells a thread that hangs, and the status how a thread spends its time.
// The thread enters stages; jobs of the backend may end on any thread; any thread reads. Zeroed,
// the thread is idle.
#ifndef FRAMED_DAEMON_BASE_STAGE_WATCH_H
#define FRAMED_DAEMON_BASE_STAGE_WATCH_H

#include <stdatomic.h>
#include <stdint.h>

enum stage {
    STAGE_IDLE, // the thread has not begun, or has ended
    STAGE_CONNECT,
    STAGE_READ, // waits for packets
    STAGE_DECODE,
    STAGE_ANALYSE,
    STAGE_SUBMIT,        // waits for the backend or for clients
    STAGE_CHANGE_DEVICE, // goes over to another device, or releases the one it has
    STAGE_CLOSE,
    STAGE_PAUSE, // waits for its next try to connect
    STAGES
};

enum { STAGE_NO_LIMIT = -1 };

struct stage_watch {
    _Atomic int stage;        // enum stage
    _Atomic int64_t since_ns; // CLOCK_MONOTONIC: when the thread entered the stage
    _Atomic int64_t due_ns;   // CLOCK_MONOTONIC: when it means to leave it; 0: no limit
    _Atomic uint64_t spent_ns[STAGES];
    int64_t counted_ns; // the thread's own: spent_ns holds all time up to here
    // The backend's jobs for this camera:
    _Atomic int jobs;       // that it has
    _Atomic int64_t job_ns; // CLOCK_MONOTONIC: when it got the first of them, or finished another
};

// The thread enters a stage that takes `limit_ns` at most, beside what it computes; STAGE_NO_LIMIT:
// somebody else decides how long. Entering the present stage again only sets the limit anew.
// Accepts NULL: nobody watches.
void stage_enter(struct stage_watch *, enum stage, int64_t limit_ns);
// Since when the thread is in that stage; 0: it is in another.
int64_t stage_since_ns(const struct stage_watch *, enum stage);

// The backend gets a job from the thread; on any thread, it has finished a job at `now_ns`.
void stage_job_begins(struct stage_watch *);
void stage_job_ends(struct stage_watch *, int64_t now_ns);

// What the thread hangs in ("reading"): a stage that overran its limit by more than `patience_ns`,
// or a backend that finished no job for so long. NULL: nothing hangs.
const char *stage_hangs(const struct stage_watch *, int64_t patience_ns);

#endif
