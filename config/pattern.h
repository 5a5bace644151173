// Paths of files with the local time in their name: "/data/gate-%Y%m%d-%H%M%S.y4m".
#ifndef FRAMED_CONFIG_PATTERN_H
#define FRAMED_CONFIG_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

// strftime's conversions that a name may contain. Each matches a fixed pattern in every locale, so
// that files of an earlier run are recognised.
#define PATTERN_ALLOWED "%Y %m %d %j %F %H %M %S %s %z, %% for a percent sign"

// Returns the mistake in a path's percent signs, or NULL.
const char *pattern_wrong(const char *path);
// The functions below require a path that pattern_wrong accepts.
bool pattern_has_time(const char *path);
void pattern_unescape(char *path); // path without a time: "%%" becomes "%"
// Writes the path of a file that begins at `time`. Returns 0 or -ENAMETOOLONG.
int pattern_at(const char *path, time_t time, char *to, size_t size);
// Writes an fnmatch pattern that matches the file's name at any time, with `more`, also a pattern,
// before the ending. Returns 0 or -ENAMETOOLONG.
int pattern_glob(const char *path, const char *more, char *to, size_t size);

// Returns true if the path gives `name`, a file's name without its folder, at some time, perhaps
// with a number before the ending ("gate-20240131.2.mp4").
bool pattern_matches(const char *path, const char *name);

#endif
