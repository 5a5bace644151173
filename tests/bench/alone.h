// Decoding alone: the cameras of a configuration, ingest and decoder as a camera has them, each on
// a thread; the pictures go straight back. What the whole daemon is held against.
#ifndef FRAMED_TESTS_BENCH_ALONE_H
#define FRAMED_TESTS_BENCH_ALONE_H

// Prints "up SECONDS" once every camera has delivered, "frames N SECONDS" of the window after that,
// then ends. Returns an enum exit_code.
int alone_run(const char *config, double seconds);

#endif
