// A private folder with the configuration of a bench's cameras, which all play one clip, and the
// sockets of their rings.
#ifndef FRAMED_TESTS_BENCH_TESTBED_H
#define FRAMED_TESTS_BENCH_TESTBED_H

#include "config/config.h"
#include "tests/bench/rtsp_server.h"

enum { SETTINGS_MAX = 8 };

struct setting {
    const char *key; // full configuration path: "cuda.streams", "defaults.slots"
    const char *value;
};

struct testbed_options {
    const char *clip;
    int width, height; // of the clip's pictures
    int cameras;
    int joining; // the last ones, whose clip is missing until testbed_join
    bool realtime;
    const struct rtsp_server *rtsp; // serves the cameras; NULL: they play the clip's file
    bool udp;
    enum dtype dtype;
    enum backend_kind backend;
    int decoders;                          // 0: the daemon's choice
    struct setting settings[SETTINGS_MAX]; // override everything above
    int n_settings;
};

struct testbed {
    struct testbed_options options;
    char clip[4096]; // absolute
    char folder[64], config[96], log[96];
    char metrics[96];        // the daemon writes its counters here
    struct op_params params; // of every output
};

// Checks the configuration. Returns 0, -EINVAL with the first mistake as a sentence in `why`, or
// -ENOMEM. Pure.
int testbed_check(const struct testbed_options *, char *why, size_t size);
int testbed_open(struct testbed *, const struct testbed_options *); // 0 or negative errno
void testbed_close(struct testbed *);                 // removes the folder; accepts a zeroed one
int testbed_join(const struct testbed *, int camera); // makes its clip appear

#endif
