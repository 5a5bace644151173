// Names of files: the one with a number where the plain one is taken. Nothing is ever overwritten.
#ifndef FRAMED_DAEMON_OUTPUT_UNIQUE_PATH_H
#define FRAMED_DAEMON_OUTPUT_UNIQUE_PATH_H

enum {
    PATH_BYTES = 4096,
    COPIES_MAX = 1000000, // files of one name
};

// "gate.y4m" and 3 make "gate.3.y4m"; 0 is the plain name. Returns 0 or -ENAMETOOLONG.
int unique_path_numbered(const char *path, int number, char to[PATH_BYTES]);
// Renames `from` to the first free name of `to` from `number` on. Returns 0 or negative errno.
int unique_path_rename(const char *from, const char *to, int number);

#endif
