// Unique file names: adds a number to a name that is taken. Nothing is ever overwritten.
#ifndef FRAMED_DAEMON_OUTPUT_UNIQUE_PATH_H
#define FRAMED_DAEMON_OUTPUT_UNIQUE_PATH_H

enum {
    PATH_BYTES = 4096,
    COPIES_MAX = 1000000, // files with the same name
};

// Makes "gate.3.y4m" of "gate.y4m" and 3; keeps the name for 0. Returns 0 or -ENAMETOOLONG.
int unique_path_numbered(const char *path, int number, char to[PATH_BYTES]);
// Renames `from` to `to`, with the first free number from `number` on. 0 or a negative errno.
int unique_path_rename(const char *from, const char *to, int number);

#endif
