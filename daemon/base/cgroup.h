// The control group that this process is in: what systemd and containers limit it by.
#ifndef FRAMED_DAEMON_BASE_CGROUP_H
#define FRAMED_DAEMON_BASE_CGROUP_H

#include <stddef.h>

#define CGROUP_MEMBERSHIP "/proc/self/cgroup"
#define CGROUP_ROOT       "/sys/fs/cgroup"

// The least of the memory limits of the group that the file `membership` names and of all above it,
// version 1 or 2, bytes. SIZE_MAX where there is none.
size_t cgroup_memory_limit(const char *membership, const char *root);
// The same of processor time, in processors. INFINITY where there is none.
double cgroup_cpu_limit(const char *membership, const char *root);

#endif
