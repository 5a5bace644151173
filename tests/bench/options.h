// The command line of `framed-bench`.
#ifndef FRAMED_TESTS_BENCH_OPTIONS_H
#define FRAMED_TESTS_BENCH_OPTIONS_H

#include <stdbool.h>

#include "config/config.h"

enum { COUNTS_MAX = 16 };

enum rows {
    ROWS_COPIES,
    ROWS_YUV,
    ROWS_WARP,
    ROWS_TILES,
    ROWS_READY,
    ROWS_CAMERAS,
    ROWS_LIVE,
    ROWS_TRY,
    ROWS_FFMPEG,
    ROWS
};

enum { TRIES_MAX = 8, TRY_VALUES_MAX = 12, TRY_COMBINATIONS_MAX = 64, TRY_RUNS_MAX = 32 };

// Values to try for one key.
struct
try {
    char key[64]; // full path: "cuda.streams", "defaults.slots"
    char value[TRY_VALUES_MAX][32];
    int n;
};

struct bench_options {
    bool json;
    const char *svg, *clip, *ffmpeg; // NULL: not requested
    const char *decode_alone;        // config of the child that only decodes it
    int cameras[COUNTS_MAX], n_cameras;
    enum dtype dtypes[COUNTS_MAX]; // tensor types for `cameras`
    int n_dtypes;
    bool live;
    bool rtsp, udp;  // the live and try cameras use RTSP from a server in this program
    int withhold;    // the server withholds one in this many of their packets; 0: none
    int join;        // cameras of a live run that start while the others run
    double seconds;  // of each window; 0: the rows' default
    double settle;   // live cameras: from the last one's first frame to the window
    bool rows[ROWS]; // selected rows
    enum backend_kind backend;
    int decoders;      // 0: the daemon's choice
    char framed[4096]; // the program for the camera rows
    struct try tries[TRIES_MAX];
    int n_tries;
    int runs; // per combination of the tries' values
};

// Returns an enum exit_code, after printing the reason unless it is EXIT_OK. *help: help was
// requested and printed.
int bench_options_parse(struct bench_options *, int argc, char **argv, bool *help);

#endif
