// Keys and values that framed no longer has. For one release a configuration that has them still
// loads: they are ignored, noted with their places, and named in warnings.
#ifndef FRAMED_CONFIG_GONE_H
#define FRAMED_CONFIG_GONE_H

#include <stdio.h>

#include "config/schema.h"

// A key of a table that is gone, or a section with all below. With `value`, only those values are.
struct gone_key {
    const struct table *table; // output_table stands for batches too
    const char *key;           // dotted
    const char *value;         // fnmatch() pattern, ignoring case; NULL: the key is gone
    const char *version;       // first version without it
    const char *instead;       // advice for the user
    bool rtsp;                 // cameras: gone only beside an RTSP URL
};

// A use of a gone key or value in a configuration.
struct gone_use {
    const struct gone_key *gone;
    struct place at;
    char *path; // dotted, as in messages
};

// Returns the first row of `key`, or the next one after `before`; NULL: none.
const struct gone_key *gone_find(const struct table *, const char *key,
                                 const struct gone_key *before);
// Notes one use in the configuration. Returns 0 or -ENOMEM.
int gone_note(struct config *, const struct gone_key *, struct place, const char *path);
// Returns the i-th use in words, with its place, to be freed; NULL: no memory.
char *gone_text(const struct config *, int i);
// Returns true if no earlier use is of the same row: only the first is logged.
bool gone_is_first(const struct config *, int i);
void gone_free(struct config *);

#endif
