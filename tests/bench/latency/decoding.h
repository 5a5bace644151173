// The floor of a latency: libavcodec alone decodes a clip's pictures from memory, at their own
// rate, so that caches and clocks are as cold as with a camera. It has as many threads as framed
// gives a single camera.
#ifndef FRAMED_TESTS_BENCH_LATENCY_DECODING_H
#define FRAMED_TESTS_BENCH_LATENCY_DECODING_H

#include "tests/bench/clip_units.h"

// Measures in ms[n] the time to decode each of the first n pictures, in the order of decoding. The
// clip is repeated. Takes as long as the pictures last. Returns 0 or a negative errno of
// libavcodec.
int decoding_measure(double *ms, size_t n, const struct clip_units *);

#endif
