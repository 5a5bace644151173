// What memory alone takes on the CPU: threads that read and write as many bytes as a job must.
#ifndef FRAMED_TESTS_BENCH_FLOOR_H
#define FRAMED_TESTS_BENCH_FLOOR_H

#include <stddef.h>

// Each of `threads` reads its part of `read` bytes and writes its part of `written` bytes: memcpy
// of what both have, then memset or a plain sum of the rest. Fills seconds[rounds]. 0 or negative
// errno.
int floor_measure(int threads, size_t read, size_t written, int rounds, double seconds[]);

#endif
