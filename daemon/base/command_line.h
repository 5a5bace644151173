// The options of a command, read by getopt_long(3).
#ifndef FRAMED_DAEMON_BASE_COMMAND_LINE_H
#define FRAMED_DAEMON_BASE_COMMAND_LINE_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

struct command_line {
    const char *command;          // as the user calls it: "framed status"
    const char *letters;          // short options, after a colon; h is help
    const struct option *options; // long options, ending with a zeroed one
    void (*usage)(FILE *to);      // NULL: the caller prints it
    int (*take)(void *opaque, int option, const char *text); // returns EXIT_OK or another exit code
    // The same for each argument that is not an option, in order. NULL: none are allowed.
    int (*take_argument)(void *opaque, const char *text);
};

// Passes each option to `take`. Returns EXIT_OK, and sets *help if help was requested. Returns
// EXIT_USAGE after printing one line to stderr.
int command_line_read(const struct command_line *, int argc, char **argv, void *opaque, bool *help);
// Prints what is wrong with an option of the command, without any password in it. Returns
// EXIT_USAGE.
int command_line_refuse(const char *command, const char *option, const char *what);
// Call at the end of the command. Returns `code`. If standard output failed, as on a full disk,
// prints a line to stderr and returns EXIT_RUNTIME in place of EXIT_OK.
int command_line_finish(const char *command, int code);

#endif
