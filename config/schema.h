// The tables of keys, with each key's member in the structs, type, default, range and help. All are
// constant, so any thread may read them.
#ifndef FRAMED_CONFIG_SCHEMA_H
#define FRAMED_CONFIG_SCHEMA_H

#include <stdio.h>

#include "config/config.h"

enum { CAMERAS_MAX = 1024, BATCHES_MAX = 64 };

struct table {
    const char *noun; // names one object: "a camera"
    const struct config_row *rows;
    int n;
    size_t size;                      // of the struct
    size_t name_offset, place_offset; // tables of named items only
    size_t places_offset;
    int name_max, items_max; // bytes of a name; objects in a map
};

// The key of one row of a table, as given in the file.
struct given {
    struct place key; // line 0: not given, so the member holds a default
    struct place value;
    int node;   // of the YAML document
    bool wrong; // the value's mistake is noted already
};

// A batch is an output that cameras share: both tables have the same rows.
extern const struct table root_table, camera_table, output_table, batch_table;

// Returns true if the objects of a table are outputs or batches, struct output_config.
bool table_is_of_outputs(const struct table *);
// Returns true if objects of the table have the row's key: outputs lack the keys of batches.
bool table_has(const struct table *, const struct config_row *);

// Returns the row with that key, or NULL.
const struct config_row *table_find(const struct table *, const char *key);
// Returns the key of `table` that a misspelt `key` probably means, or NULL.
const char *table_nearest(const struct table *, const char *key);
// Returns true for a key of the section `prefix` itself ("": of the table), not of one inside it.
bool row_in_section(const struct config_row *, const char *prefix);
const char *row_word(const struct config_row *); // the last word of its key
// Returns true if the row has a member for the functions of value.h.
bool row_has_value(const struct config_row *);
// Returns true if outputs of that kernel have the key.
bool row_is_of(const struct config_row *, enum kernel);
// Describes the values of the key in words: "100ms to 1h; units h, m, s, ms", cut to `size` bytes.
// Returns `to`.
char *row_allowed(const struct config_row *, char *to, size_t size);
// Returns the choice that stands for `value`, or "".
const char *row_choice(const struct config_row *, int value);

// --- keys and values that framed no longer has

// For one release a configuration that has them still loads: they are ignored, noted with their
// places, and named in warnings.

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
// Returns true if a key of that name is used: keys that it gave an effect are accepted.
bool gone_is_used(const struct config *, const char *key);
void gone_free(struct config *);

#endif
