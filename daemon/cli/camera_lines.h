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

enum { CAMERA_SECRET_MAX = 80 };

// The caller frees it; NULL: no memory.
char *camera_lines_print(const struct camera_lines *);
// The URL as it stands there, but without YAML's quotes. Likewise.
char *camera_lines_url(const struct camera_lines *);
// The variable that stands for the password; "": the URL has no secret.
const char *camera_lines_secret(const struct camera_lines *, char to[CAMERA_SECRET_MAX]);

#endif
