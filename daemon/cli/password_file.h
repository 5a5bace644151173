// The password that a command is given in a file, where other users of the box do not see it.
#ifndef FRAMED_DAEMON_CLI_PASSWORD_FILE_H
#define FRAMED_DAEMON_CLI_PASSWORD_FILE_H

#include <stddef.h>

enum { PASSWORD_MAX = 4096 }; // with its zero

// Reads the file's first line ("-": of standard input). EXIT_OK; or EXIT_USAGE, and a line on
// stderr that names `command`.
int password_file_read(const char *command, const char *path, char to[PASSWORD_MAX]);

#endif
