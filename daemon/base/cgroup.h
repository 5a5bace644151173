// The limits of this process's control group, as systemd and containers set them.
#ifndef FRAMED_DAEMON_BASE_CGROUP_H
#define FRAMED_DAEMON_BASE_CGROUP_H

#include <stddef.h>

#define CGROUP_MEMBERSHIP "/proc/self/cgroup"
#define CGROUP_ROOT       "/sys/fs/cgroup"

// Returns the lowest memory limit in bytes of the group named in the file `membership` and of its
// ancestors, version 1 or 2. SIZE_MAX: no limit.
size_t cgroup_memory_limit(const char *membership, const char *root);
// The same for processor time, in processors. INFINITY: no limit.
double cgroup_cpu_limit(const char *membership, const char *root);

#endif
