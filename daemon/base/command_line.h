// The options of a command, read by getopt_long(3).
#ifndef FRAMED_DAEMON_BASE_COMMAND_LINE_H
#define FRAMED_DAEMON_BASE_COMMAND_LINE_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

struct command_line {
    const char *command;          // as the user calls it: "framed status"
    const char *letters;          // of short options, behind a colon; h asks for help
    const struct option *options; // long ones, up to a zeroed one
    void (*usage)(FILE *to);      // NULL: the caller prints it
    int (*take)(void *opaque, int option, const char *text); // EXIT_OK or what refusing returns
    // The same for what is no option, in its order. NULL: there may be none.
    int (*take_argument)(void *opaque, const char *text);
};

// Gives each option to `take`. Returns EXIT_OK, with *help where help was asked for, or
// EXIT_USAGE, which one line on stderr explains.
int command_line_read(const struct command_line *, int argc, char **argv, void *opaque, bool *help);
// Says what is wrong with an option of the command, without a password that may stand there.
// Returns EXIT_USAGE.
int command_line_refuse(const char *command, const char *option, const char *what);
// At the end of the command: returns `code`, or EXIT_RUNTIME in place of EXIT_OK, with a line on
// stderr, where standard output did not take what was printed, as on a full disk.
int command_line_finish(const char *command, int code);

#endif
