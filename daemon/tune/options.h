// The command line of `framed tune`.
#ifndef FRAMED_DAEMON_TUNE_OPTIONS_H
#define FRAMED_DAEMON_TUNE_OPTIONS_H

#include <stdbool.h>

struct tune_options {
    const char *config;
    const char *clip; // that every camera plays; NULL: the cameras as they are
    bool live;        // the clip at its own pace
    bool write, json, grid;
    double seconds;        // of each trial; 0: the default
    const char *rehearsal; // a folder: be the child that runs the cameras into rings there
};

// What follows the command's name; argv[0] is the name. Returns an enum exit_code and has printed
// why where it is not EXIT_OK; *help: it was asked for, and printed.
int tune_options_parse(struct tune_options *, int argc, char **argv, bool *help);

#endif
