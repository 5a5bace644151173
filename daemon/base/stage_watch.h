// The stage of one camera's thread, when it entered the stage, and its deadline. The watchdog
// detects a hanging thread from this; the status reports how a thread spends its time. The thread
// enters stages; backend jobs may end on any thread; any thread reads. Zeroed, the thread is idle.
#ifndef FRAMED_DAEMON_BASE_STAGE_WATCH_H
#define FRAMED_DAEMON_BASE_STAGE_WATCH_H

#include <stdatomic.h>
#include <stdint.h>

enum stage {
    STAGE_IDLE, // the thread has not started, or has ended
    STAGE_CONNECT,
    STAGE_READ, // waits for packets
    STAGE_DECODE,
    STAGE_ANALYSE,
    STAGE_SUBMIT,        // waits for the backend or for clients
    STAGE_CHANGE_DEVICE, // moves to another device, or releases the present one
    STAGE_CLOSE,
    STAGE_PAUSE, // waits before it connects again
    STAGES
};

enum { STAGE_NO_LIMIT = -1 };

struct stage_watch {
    _Atomic int stage;        // enum stage
    _Atomic int64_t since_ns; // CLOCK_MONOTONIC: when the thread entered the stage
    _Atomic int64_t due_ns;   // CLOCK_MONOTONIC: its deadline; 0: no limit
    _Atomic uint64_t spent_ns[STAGES];
    int64_t counted_ns; // used by the thread alone: spent_ns includes all time up to here
    // The backend's jobs for this camera:
    _Atomic int jobs;       // unfinished
    _Atomic int64_t job_ns; // CLOCK_MONOTONIC: when it got the first of them or finished the last
};

// Enters a stage that takes `limit_ns` at most, besides computing; STAGE_NO_LIMIT: its duration
// depends on others. Entering the present stage again only renews the limit. Accepts NULL: not
// watched.
void stage_enter(struct stage_watch *, enum stage, int64_t limit_ns);
// Returns when the thread entered that stage; 0: it is in another.
int64_t stage_since_ns(const struct stage_watch *, enum stage);

// The thread gives the backend a job; a job has finished at `now_ns`, on any thread.
void stage_job_begins(struct stage_watch *);
void stage_job_ends(struct stage_watch *, int64_t now_ns);

// Returns what the thread hangs in ("reading"): a stage more than `patience_ns` over its limit, or
// a backend that finished no job for that long. NULL: nothing hangs.
const char *stage_hangs(const struct stage_watch *, int64_t patience_ns);

#endif
