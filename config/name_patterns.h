// Patterns over the names of cameras: ["gate*", "yard-?", "!yard-9"]. A * stands for any
// characters, a ? for one character; a pattern behind a ! takes names out. Of the patterns that fit
// a name the last decides.
#ifndef FRAMED_CONFIG_NAME_PATTERNS_H
#define FRAMED_CONFIG_NAME_PATTERNS_H

#include "config/types.h"

// 0 with *ret for name_patterns_free; -EINVAL with what is wrong in *wrong; -ENOMEM.
int name_patterns_parse(struct name_patterns *ret, const char *const text[], int n,
                        const char **wrong);
// A copy with memory of its own. 0; -ENOMEM, and *ret is empty.
int name_patterns_copy(struct name_patterns *ret, const struct name_patterns *);
void name_patterns_free(struct name_patterns *); // empties it
// Whether both have the same patterns in the same order.
bool name_patterns_equal(const struct name_patterns *, const struct name_patterns *);

// Whether one pattern fits the name, with or without a !.
bool name_pattern_fits(const char *pattern, const char *name);
// Whether the patterns choose the name.
bool name_patterns_choose(const struct name_patterns *, const char *name);

#endif
