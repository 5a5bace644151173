// A loop that the fuzzer turns itself, and what ends the process when it does not hold.
#ifndef FRAMED_TESTS_FUZZ_TURNS_H
#define FRAMED_TESTS_FUZZ_TURNS_H

#include <stdbool.h>
#include <uv.h>

// Ends the process, with a word of why, where the condition does not hold.
#define MUST(condition) must(condition, #condition, __FILE__, __LINE__)
void must(bool holds, const char *condition, const char *file, int line);

// Turns the loop until it has nothing to do; one that never comes to rest ends the process.
void settle(uv_loop_t *);

#endif
