// A folder of its own with the configuration of a bench's cameras, which all play one clip, and
// the sockets of their rings.
#ifndef FRAMED_TESTS_BENCH_SCENE_H
#define FRAMED_TESTS_BENCH_SCENE_H

#include "config/config.h"

struct scene_options {
    const char *clip;
    int width, height; // of its pictures
    int cameras;
    int joining; // the last ones of them, whose clip is not there until scene_join
    bool realtime;
    enum dtype dtype;
    enum backend_kind backend;
    int decoders; // 0: the daemon's choice
};

struct scene {
    struct scene_options options;
    char clip[4096]; // absolute
    char folder[64], config[96], log[96];
    struct op_params params; // of every output
};

int scene_open(struct scene *, const struct scene_options *); // 0 or negative errno
void scene_close(struct scene *);                 // removes the folder; accepts a zeroed one
int scene_join(const struct scene *, int camera); // its clip is there from now on

#endif
