// Reads the text of a configuration.
#ifndef FRAMED_CONFIG_FILE_H
#define FRAMED_CONFIG_FILE_H

#include <stdio.h>

#define FILE_STDIN "-"

// The name of the file at `path` in messages.
const char *file_name(const char *path);
// Reads all of the file, for the caller to free; FILE_STDIN is standard input. 0 or negative errno.
int file_read(char **ret, size_t *length, const char *path);
// The same for a file of a folder that another user may write. Waits for no pipe. Root follows no
// link there, and reads files of its own or of the folder's owner only. -ENOTSUP: it is no regular
// file; -ELOOP: a link; -EPERM: a file of somebody else.
int file_read_in_folder(char **ret, size_t *length, const char *path);

#endif
