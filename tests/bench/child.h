// A process that the bench starts, watches and stops, by its id. One thread (the one that started
// it: the child is killed when that one ends).
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
    size_t used; // of line: what came of it so far
};

// What a process has used until `at_ns` (CLOCK_MONOTONIC).
struct child_usage {
    double cpu;      // seconds
    double resident; // bytes
    int64_t at_ns;
};

// argv[0] is the program. Standard error goes to the file `log`, standard output to child->out with
// `piped`, else nowhere. 0 or negative errno; a program that cannot be started exits with 127.
int child_start(struct child *, char *const argv[], const char *log, bool piped);
bool child_runs(const struct child *);
// Its exit code; -1 while it runs, and where a signal ended it.
int child_code(const struct child *);
// The last line of its log, "" where there is none.
void child_last_words(const char *log, char *to, size_t size);
struct child_usage child_usage(const struct child *); // zeroes where it is gone
// The next line of its output, without its end, within `seconds`; NULL: none came, or a signal asks
// to stop.
const char *child_line(struct child *, double seconds);
// SIGTERM, and SIGKILL after `seconds`; accepts one that never ran.
void child_stop(struct child *, double seconds);

#endif
