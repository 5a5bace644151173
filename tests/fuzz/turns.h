// A loop that the fuzzer runs itself, and a check that ends the process.
#ifndef FRAMED_TESTS_FUZZ_TURNS_H
#define FRAMED_TESTS_FUZZ_TURNS_H

#include <stdbool.h>
#include <uv.h>

// Ends the process with a message if the condition is false.
#define MUST(condition) must(condition, #condition, __FILE__, __LINE__)
void must(bool holds, const char *condition, const char *file, int line);

// Runs the loop until it has nothing to do; ends the process if it never becomes idle.
void settle(uv_loop_t *);

#endif
