// Reads the text of a configuration.
#ifndef FRAMED_CONFIG_FILE_H
#define FRAMED_CONFIG_FILE_H

#include <stdio.h>

#define FILE_STDIN "-"

// The name of the file at `path` in messages.
const char *file_name(const char *path);
// Reads all of the file, for the caller to free; FILE_STDIN is standard input. 0 or negative errno.
int file_read(char **ret, size_t *length, const char *path);

#endif
