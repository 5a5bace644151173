// The rows of the configuration: for every key its place in the structs, type, default, range and
// help. Constant, so safe on any thread.
#ifndef FRAMED_CONFIG_SCHEMA_H
#define FRAMED_CONFIG_SCHEMA_H

#include <stdio.h>

#include "config/config.h"

enum { CAMERAS_MAX = 1024 };

struct table {
    const char *noun; // what one object of it is called
    const struct config_row *rows;
    int n;
    size_t size;                      // of the struct
    size_t name_offset, place_offset; // tables of named items
    size_t places_offset;
    int name_max, items_max; // bytes of a name; most items in a map
};

extern const struct table root_table, camera_table, output_table;

// The row with that key, or NULL.
const struct config_row *table_find(const struct table *, const char *key);
// The key of `table` that `key` was probably meant to be, or NULL.
const char *table_nearest(const struct table *, const char *key);
// Whether `row` stands directly in the section `prefix` ("" is the table itself); its last word.
bool row_in_section(const struct config_row *, const char *prefix);
const char *row_word(const struct config_row *);
// Whether a row has a member that value.h's functions are for.
bool row_has_value(const struct config_row *);
// Whether outputs of that kernel have the key.
bool row_is_of(const struct config_row *, enum op_kind kernel);
// What the key can hold, in words: "100ms to 1h; units h, m, s, ms", cut to `size` bytes. Returns
// `to`.
char *row_allowed(const struct config_row *, char *to, size_t size);
// The choice that stands for `value`, or "".
const char *row_choice(const struct config_row *, int value);

#endif
