// Memory and processors that this process may use: what the machine and the control group, as
// systemd and containers set it, grant.
#ifndef FRAMED_DAEMON_BASE_MACHINE_H
#define FRAMED_DAEMON_BASE_MACHINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// --- limits of the control group

#define CGROUP_MEMBERSHIP "/proc/self/cgroup"
#define CGROUP_ROOT       "/sys/fs/cgroup"

// Returns the lowest memory limit in bytes of the group named in the file `membership` and of its
// ancestors, version 1 or 2. SIZE_MAX: no limit.
size_t cgroup_memory_limit(const char *membership, const char *root);
// The same for processor time, in processors. INFINITY: no limit.
double cgroup_cpu_limit(const char *membership, const char *root);

// --- the machine

// Returns the number of processors for this process, by its affinity and its control group's quota.
double processor_time_limit(void);
// Returns the system's estimate of the host memory in bytes that programs can still allocate; -1:
// not available. Any thread.
long long host_memory_available(void);

// --- limits of memory. Any thread.

// Adds `bytes` to *taken, unless it would exceed the limit: returns false then. *left: what was
// left before.
bool memory_take(_Atomic size_t *taken, size_t limit, size_t bytes, size_t *left);

// Memory that the plan for all cameras (`framed check`) leaves free. A camera whose pictures are
// larger than planned takes the difference from here. Zeroed, nothing is left.
struct memory_reserve {
    _Atomic size_t limit, taken; // bytes beyond the plan, by all cameras
};

// Sets the limit for all cameras and the total that their configuration plans.
void memory_reserve_plan(struct memory_reserve *, size_t limit, size_t planned);
// Takes all `bytes` beyond the plan, or none, as memory_take.
bool memory_reserve_take(struct memory_reserve *, size_t bytes, size_t *left);
void memory_reserve_give(struct memory_reserve *, size_t bytes);

#endif
