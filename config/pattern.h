// Paths of files whose name holds a time: "/data/gate-%Y%m%d-%H%M%S.y4m", local time.
#ifndef FRAMED_CONFIG_PATTERN_H
#define FRAMED_CONFIG_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

// What of strftime a name may hold: what a leftover can be recognised by, whatever the locale.
#define PATTERN_ALLOWED "%Y %m %d %j %F %H %M %S %s %z, %% for a percent sign"

// What is wrong with the percent signs of a path, or NULL.
const char *pattern_wrong(const char *path);
// Of a path with which nothing is wrong:
bool pattern_has_time(const char *path);
void pattern_unescape(char *path); // one without a time: "%%" becomes "%"
// The path at a time. Returns 0 or -ENAMETOOLONG.
int pattern_at(const char *path, time_t, char *to, size_t size);
// A pattern of fnmatch for the file's name at any time; `more`, one of fnmatch too, stands before
// its ending. Returns 0 or -ENAMETOOLONG.
int pattern_glob(const char *path, const char *more, char *to, size_t size);

#endif
