// Decoding alone, the reference for the whole daemon: each camera of a configuration on a thread,
// with a camera's ingest and decoder. Pictures are released at once.
#ifndef FRAMED_TESTS_BENCH_ALONE_H
#define FRAMED_TESTS_BENCH_ALONE_H

// Prints "up SECONDS" once every camera has delivered, then "frames N SECONDS" of the following
// window, then ends. Returns an enum exit_code.
int alone_run(const char *config, double seconds);

#endif
