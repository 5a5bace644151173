// The file of a configuration, read to be written again. One thread.
#ifndef FRAMED_DAEMON_TUNE_ORIGINAL_H
#define FRAMED_DAEMON_TUNE_ORIGINAL_H

#include <stddef.h>
#include <sys/stat.h>

struct original {
    char path[4096]; // where it really is, behind links
    char *text;
    size_t length;
    struct stat stat;
};

// 0 or negative errno: -EFBIG where it is too large for a configuration.
int original_read(struct original *, const char *path);
void original_free(struct original *); // accepts a zeroed one
// Whether original_replace could do its work. What could be said against it in `why`, or 0.
int original_writable(const struct original *, char *why, size_t size);
// Puts `text` in the place of the file at once, with its owner and mode; the old text is in
// PATH.bak then. 0, or negative errno and a sentence in `why`: then it is as it was.
int original_replace(const struct original *, const char *text, size_t length, char *why,
                     size_t size);

#endif
