// The lines of a configuration for a camera that was probed.
#ifndef FRAMED_DAEMON_CLI_CAMERA_LINES_H
#define FRAMED_DAEMON_CLI_CAMERA_LINES_H

#include <stdbool.h>

struct camera_lines {
    const char *name, *url;
    const char *transport;     // NULL: the default
    int width, height;         // of its pictures
    const char *preset, *size; // of its output; NULL: the defaults
    // The secrets of the URL as they are. Otherwise they are ${NAME_USER} and so on, by the
    // camera's name, and a comment says where these come from.
    bool clear;
};

// The caller frees it; NULL: no memory.
char *camera_lines_print(const struct camera_lines *);
#endif
