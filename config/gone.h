// Keys and values that framed no longer has. For one release a configuration that has them still
// loads: they are ignored, noted with their places, and named in warnings.
#ifndef FRAMED_CONFIG_GONE_H
#define FRAMED_CONFIG_GONE_H

#include <stdio.h>

#include "config/schema.h"

// A key of a table that is gone: a section, all below it. With `value`, only those values are gone.
struct gone_key {
    const struct table *table; // output_table stands for batches too
    const char *key;           // dotted
    const char *value;         // a pattern of fnmatch(), whatever the case; NULL: the key is gone
    const char *version;       // the first that does not have it
    const char *instead;       // what to do about it
    bool rtsp;                 // of cameras: it is gone beside a URL of RTSP alone
};

// One place of a configuration where a key or value that is gone is given.
struct gone_use {
    const struct gone_key *gone;
    struct place at;
    char *path; // dotted, as in messages
};

// Returns the first row of `key`, or the next one after `before`. NULL: there is none.
const struct gone_key *gone_find(const struct table *, const char *key,
                                 const struct gone_key *before);
// Notes one use in the configuration. 0 or -ENOMEM.
int gone_note(struct config *, const struct gone_key *, struct place, const char *path);
// Returns the i-th use in words, with its place, for free(); or NULL: no memory.
char *gone_text(const struct config *, int i);
// Whether no earlier use is of the same row: the one to log.
bool gone_is_first(const struct config *, int i);
void gone_free(struct config *); // forgets all uses

#endif
