// SIGINT, SIGTERM and SIGHUP, blocked and looked at, so that children and folders are always
// cleaned up.
#ifndef FRAMED_TESTS_BENCH_INTERRUPT_H
#define FRAMED_TESTS_BENCH_INTERRUPT_H

#include <stdbool.h>

void interrupt_block(void); // on the main thread, before there are others
bool interrupted(void);     // whether one has come
// Waits, or less when interrupted: -EINTR.
int interrupt_wait(double seconds);

#endif
