// Processor time of this process, and of all processes on its allowed processors. Loop thread.
#ifndef FRAMED_DAEMON_BASE_PROCESSOR_TIME_H
#define FRAMED_DAEMON_BASE_PROCESSOR_TIME_H

#include <stdint.h>

// Since the process started.
int64_t processor_time_own_ns(void);
// Since boot, without idle time; 0: not available.
int64_t processor_time_all_ns(void);
// Number of processors for this process, by its affinity and its control group's quota.
double processor_time_limit(void);

#endif
