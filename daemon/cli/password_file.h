// Reads a command's password from a file, where other users of the machine cannot see it.
#ifndef FRAMED_DAEMON_CLI_PASSWORD_FILE_H
#define FRAMED_DAEMON_CLI_PASSWORD_FILE_H

#include <stddef.h>

enum { PASSWORD_MAX = 4096 }; // with its zero

// Reads the file's first line ("-": of standard input). Returns EXIT_OK, or EXIT_USAGE after a line
// on stderr that names `command`.
int password_file_read(const char *command, const char *path, char to[PASSWORD_MAX]);

#endif
