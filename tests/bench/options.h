// The command line of `framed-bench`.
#ifndef FRAMED_TESTS_BENCH_OPTIONS_H
#define FRAMED_TESTS_BENCH_OPTIONS_H

#include <stdbool.h>

#include "config/config.h"

enum { COUNTS_MAX = 16 };

enum rows { ROWS_COPIES, ROWS_YUV, ROWS_WARP, ROWS_CAMERAS, ROWS_LIVE, ROWS_FFMPEG, ROWS };

struct bench_options {
    bool json;
    const char *svg, *clip, *ffmpeg; // NULL: not asked for
    const char *decode_alone;        // a configuration: be the child that only decodes it
    int cameras[COUNTS_MAX], n_cameras;
    enum dtype dtypes[COUNTS_MAX]; // of the tensors of `cameras`
    int n_dtypes;
    bool live;
    int join;        // cameras of a live run that start while the others run
    double seconds;  // of each window; 0: the rows' own default
    bool rows[ROWS]; // that are wanted
    enum backend_kind backend;
    int decoders;      // 0: the daemon's choice
    char framed[4096]; // the program that the camera rows run
};

// Returns an enum exit_code and has printed
// why where it is not EXIT_OK; *help: it was asked for, and printed.
int bench_options_parse(struct bench_options *, int argc, char **argv, bool *help);

#endif
