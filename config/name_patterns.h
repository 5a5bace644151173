// Patterns for names of cameras: ["gate*", "yard-?", "!yard-9"]. A * matches any characters, a ?
// one character; a pattern after a ! excludes names. The last pattern that matches a name decides.
#ifndef FRAMED_CONFIG_NAME_PATTERNS_H
#define FRAMED_CONFIG_NAME_PATTERNS_H

#include "config/types.h"

// Returns 0 with *ret for name_patterns_free; -EINVAL with the mistake in *wrong; or -ENOMEM.
int name_patterns_parse(struct name_patterns *ret, const char *const text[], int n,
                        const char **wrong);
// Makes a copy with its own memory. Returns 0, or -ENOMEM with *ret empty.
int name_patterns_copy(struct name_patterns *ret, const struct name_patterns *);
void name_patterns_free(struct name_patterns *); // empties it
// Returns true if both have the same patterns in the same order.
bool name_patterns_equal(const struct name_patterns *, const struct name_patterns *);

// Returns true if one pattern matches the name, with or without a !.
bool name_pattern_fits(const char *pattern, const char *name);
// Returns true if the patterns choose the name.
bool name_patterns_choose(const struct name_patterns *, const char *name);

#endif
