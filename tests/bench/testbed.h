// A folder of its own with the configuration of a bench's cameras, which all play one clip, and
// the sockets of their rings.
#ifndef FRAMED_TESTS_BENCH_TESTBED_H
#define FRAMED_TESTS_BENCH_TESTBED_H

#include "config/config.h"
#include "tests/bench/rtsp_server.h"

enum { SETTINGS_MAX = 8 };

struct setting {
    const char *key; // of the configuration, from the top: "cuda.streams", "defaults.slots"
    const char *value;
};

struct testbed_options {
    const char *clip;
    int width, height; // of its pictures
    int cameras;
    int joining; // the last ones of them, whose clip is not there until testbed_join
    bool realtime;
    const struct rtsp_server *rtsp; // from which the cameras come; NULL: they play the clip's file
    bool udp;
    enum dtype dtype;
    enum backend_kind backend;
    int decoders;                          // 0: the daemon's choice
    struct setting settings[SETTINGS_MAX]; // which win over all that follows from the above
    int n_settings;
};

struct testbed {
    struct testbed_options options;
    char clip[4096]; // absolute
    char folder[64], config[96], log[96];
    char metrics[96];        // the file for the daemon's counters
    struct op_params params; // of every output
};

// Whether it is a good configuration. 0; or -EINVAL with the first mistake as a sentence in `why`;
// or -ENOMEM. Pure.
int testbed_check(const struct testbed_options *, char *why, size_t size);
int testbed_open(struct testbed *, const struct testbed_options *); // 0 or negative errno
void testbed_close(struct testbed *);                 // removes the folder; accepts a zeroed one
int testbed_join(const struct testbed *, int camera); // its clip is there from now on

#endif
