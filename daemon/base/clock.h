// Reads clocks, in ns. Any thread.
#ifndef FRAMED_DAEMON_BASE_CLOCK_H
#define FRAMED_DAEMON_BASE_CLOCK_H

#include <stdint.h>

int64_t monotonic_ns(void); // CLOCK_MONOTONIC
int64_t realtime_ns(void);  // CLOCK_REALTIME
int64_t boottime_ns(void);  // CLOCK_BOOTTIME: counts on while the machine sleeps

#endif
