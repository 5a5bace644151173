// Reads the text of a configuration.
#ifndef FRAMED_CONFIG_FILE_H
#define FRAMED_CONFIG_FILE_H

#include <stdio.h>

#define FILE_STDIN "-"

// Returns the name of the file at `path` for messages.
const char *file_name(const char *path);
// Reads the whole file; the caller frees *ret. FILE_STDIN is standard input. 0 or negative errno.
int file_read(char **ret, size_t *length, const char *path);
// Same for a file in a folder that another user may write to. Does not wait for a pipe. As root,
// follows no link there, and reads only files of root and of the folder's owner. -ENOTSUP: not a
// regular file; -ELOOP: a link; -EPERM: another user's file.
int file_read_in_folder(char **ret, size_t *length, const char *path);

#endif
