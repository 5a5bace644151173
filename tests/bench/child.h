// A process that the bench starts, watches and stops by its id. One thread: the child is killed
// when the thread that started it ends.
#ifndef FRAMED_TESTS_BENCH_CHILD_H
#define FRAMED_TESTS_BENCH_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
    pid_t pid; // 0: none
    int out;   // its standard output, or -1
    char line[4096];
    size_t used; // bytes of `line` received so far
};

// Resources a process has used until `at_ns` (CLOCK_MONOTONIC).
struct child_usage {
    double cpu;      // seconds
    double resident; // bytes
    int64_t at_ns;
};

// argv[0] is the program. stderr goes to the file `log`, stdout to child->out if `piped`, else to
// /dev/null. Returns 0 or a negative errno; a program that cannot be started exits with 127.
int child_start(struct child *, char *const argv[], const char *log, bool piped);
bool child_runs(const struct child *);
// Returns the exit code; -1 while it runs or after a signal ended it.
int child_code(const struct child *);
// Copies the last line of its log, "" if there is none.
void child_last_words(const char *log, char *to, size_t size);
struct child_usage child_usage(const struct child *); // zeroes if the process is gone
// Returns the next line of its output without the line's end, or NULL when none arrives within
// `seconds` or a signal requests a stop.
const char *child_line(struct child *, double seconds);
// Sends SIGTERM, then SIGKILL after `seconds`. Accepts a child that never ran.
void child_stop(struct child *, double seconds);

#endif
