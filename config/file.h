// A configuration's text.
#ifndef FRAMED_CONFIG_FILE_H
#define FRAMED_CONFIG_FILE_H

#include <stdio.h>

#define FILE_STDIN "-"

// What messages call the file at `path`.
const char *file_name(const char *path);
// All of the file in memory that the caller frees; FILE_STDIN is standard input. 0, or negative
// errno with one line about it in `errors`.
int file_read(char **ret, size_t *length, const char *path, FILE *errors);

#endif
