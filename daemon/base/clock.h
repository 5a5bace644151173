// Clocks and processor time, in ns, and waits until a time. Any thread.
#ifndef FRAMED_DAEMON_BASE_CLOCK_H
#define FRAMED_DAEMON_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>

int64_t monotonic_ns(void); // CLOCK_MONOTONIC
int64_t realtime_ns(void);  // CLOCK_REALTIME
int64_t boottime_ns(void);  // CLOCK_BOOTTIME: counts on while the machine sleeps

// Initialises a condition for condition_wait.
void condition_init(pthread_cond_t *);
// Waits, with the lock held, until the condition is signalled or CLOCK_MONOTONIC reaches `until_ns`
// (INT64_MAX: no limit). Returns 0, also without a reason, or -ETIMEDOUT.
int condition_wait(pthread_cond_t *, pthread_mutex_t *lock, int64_t until_ns);

// Processor time of this process since it started.
int64_t processor_time_own_ns(void);
int64_t processor_time_thread_ns(void); // of the calling thread
// Processor time of all processes since boot, without idle time, on the processors that this
// process may use; 0: not available.
int64_t processor_time_all_ns(void);

#endif
