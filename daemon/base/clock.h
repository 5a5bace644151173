// Reads clocks and processor time, in ns. Any thread.
#ifndef FRAMED_DAEMON_BASE_CLOCK_H
#define FRAMED_DAEMON_BASE_CLOCK_H

#include <stdint.h>

int64_t monotonic_ns(void); // CLOCK_MONOTONIC
int64_t realtime_ns(void);  // CLOCK_REALTIME
int64_t boottime_ns(void);  // CLOCK_BOOTTIME: counts on while the machine sleeps

// Processor time of this process since it started.
int64_t processor_time_own_ns(void);
// Processor time of all processes since boot, without idle time, on the processors that this
// process may use; 0: not available.
int64_t processor_time_all_ns(void);

#endif
