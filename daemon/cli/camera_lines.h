// Prints the lines of a configuration for a probed camera.
#ifndef FRAMED_DAEMON_CLI_CAMERA_LINES_H
#define FRAMED_DAEMON_CLI_CAMERA_LINES_H

#include <stdbool.h>

struct camera_lines {
    const char *name, *url;
    const char *transport;     // NULL: the default
    int width, height;         // of its pictures
    const char *preset, *size; // of its output; NULL: the defaults
    // Prints the URL's secrets unchanged. Otherwise they become ${NAME_USER} and so on, by the
    // camera's name, and a comment names their source.
    bool clear;
};

// Returns text that the caller frees; NULL: no memory.
char *camera_lines_print(const struct camera_lines *);
#endif
