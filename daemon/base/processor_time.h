// Processor time of this process, and of everybody on the processors that it may use. Loop thread.
#ifndef FRAMED_DAEMON_BASE_PROCESSOR_TIME_H
#define FRAMED_DAEMON_BASE_PROCESSOR_TIME_H

#include <stdint.h>

// Since the process began.
int64_t processor_time_own_ns(void);
// Since the system did, idle time left out; 0 where the system does not say.
int64_t processor_time_all_ns(void);
// How many there are for this process: its affinity, and the quota of its control group.
double processor_time_limit(void);

#endif
