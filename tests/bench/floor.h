// CPU memory floor: threads that read and write as many bytes as a job must.
#ifndef FRAMED_TESTS_BENCH_FLOOR_H
#define FRAMED_TESTS_BENCH_FLOOR_H

#include <stddef.h>

// Each of `threads` reads its part of `read` bytes and writes its part of `written` bytes: a memcpy
// of the smaller amount, then a memset or a plain sum of the rest. Fills seconds[rounds]. Returns 0
// or a negative errno.
int floor_measure(int threads, size_t read, size_t written, int rounds, double seconds[]);

#endif
