// Paths of files whose name contains the local time: "/data/gate-%Y%m%d-%H%M%S.y4m".
#ifndef FRAMED_CONFIG_PATTERN_H
#define FRAMED_CONFIG_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

// The conversions of strftime that a name may contain: those that match a fixed pattern in every
// locale, so that files of an earlier run are recognised.
#define PATTERN_ALLOWED "%Y %m %d %j %F %H %M %S %s %z, %% for a percent sign"

// What is wrong with the percent signs of a path; NULL: nothing.
const char *pattern_wrong(const char *path);
// These are for paths that pattern_wrong accepts.
bool pattern_has_time(const char *path);
void pattern_unescape(char *path); // of a path without a time: "%%" becomes "%"
// Writes the path of a file that begins at `time`. 0 or -ENAMETOOLONG.
int pattern_at(const char *path, time_t time, char *to, size_t size);
// Writes a pattern of fnmatch that the file's name matches at any time, with `more`, also a
// pattern, before the ending. 0 or -ENAMETOOLONG.
int pattern_glob(const char *path, const char *more, char *to, size_t size);

// Whether `name`, of a file without its folder, is what the path gives at some time, perhaps with a
// number before the ending ("gate-20240131.2.mp4").
bool pattern_matches(const char *path, const char *name);

#endif
