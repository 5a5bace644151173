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

// Values of one key, each to be tried.
struct
try {
    char key[64]; // from the top: "cuda.streams", "defaults.slots"
    char value[TRY_VALUES_MAX][32];
    int n;
};

struct bench_options {
    bool json;
    const char *svg, *clip, *ffmpeg; // NULL: not asked for
    const char *decode_alone;        // a configuration: be the child that only decodes it
    int cameras[COUNTS_MAX], n_cameras;
    enum dtype dtypes[COUNTS_MAX]; // of the tensors of `cameras`
    int n_dtypes;
    bool live;
    bool rtsp, udp;  // the live and try cameras come over RTSP, from a server in this program
    int withhold;    // of so many of their packets the server keeps one back; 0: none
    int join;        // cameras of a live run that start while the others run
    double seconds;  // of each window; 0: the rows' own default
    double settle;   // of the live cameras, from the last one's first frame to the window
    bool rows[ROWS]; // that are wanted
    enum backend_kind backend;
    int decoders;      // 0: the daemon's choice
    char framed[4096]; // the program that the camera rows run
    struct try tries[TRIES_MAX];
    int n_tries;
    int runs; // of each combination of the tries' values
};

// Returns an enum exit_code and has printed
// why where it is not EXIT_OK; *help: it was asked for, and printed.
int bench_options_parse(struct bench_options *, int argc, char **argv, bool *help);

#endif
