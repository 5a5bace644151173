// Blocks SIGINT, SIGTERM and SIGHUP and polls for them, so that children and folders are always
// cleaned up.
#ifndef FRAMED_TESTS_BENCH_INTERRUPT_H
#define FRAMED_TESTS_BENCH_INTERRUPT_H

#include <stdbool.h>

void interrupt_block(void); // call on the main thread before others start
bool interrupted(void);     // true if a signal is pending
// Sleeps for `seconds`. Returns -EINTR early if interrupted.
int interrupt_wait(double seconds);

#endif
