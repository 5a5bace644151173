// The rows of the configuration: for every key its place in the structs, type, default, range and
// help. Constant, so safe on any thread.
#ifndef FRAMED_CONFIG_SCHEMA_H
#define FRAMED_CONFIG_SCHEMA_H

#include "config/config.h"

enum value_type {
    VALUE_BOOL,
    VALUE_INT,
    VALUE_NUMBER,
    VALUE_STRING,
    VALUE_CHOICE,
    VALUE_DURATION,
    VALUE_BYTES,
    VALUE_DIMENSIONS,
    VALUE_LEVELS,
    VALUE_CHANNELS,
    VALUE_AFFINE,
    VALUE_CROP,
    VALUE_FRACTION,
    VALUE_FILEMODE,
    VALUE_SPLIT,
    VALUE_PIN,
    VALUE_SINK,
    VALUE_CONTROL,
    VALUE_HTTP,
    VALUE_OPTIONS,
    VALUE_SECTION,  // no member: the rows "key.*" follow it
    VALUE_DEFAULTS, // no member: rows of the camera and the output table
    VALUE_ITEMS,    // a map by name of objects of another table
};

enum for_kernel { FOR_BOTH, FOR_WARP, FOR_YUV };

enum {
    CAMERAS_MAX = 1024,
    OPTIONS_MAX = 64,
    TEXT_MAX = 4096, // bytes of one value
};

struct choice {
    const char *name;
    int value;
};

struct row {
    const char *key; // dotted within its table ("tensor.dtype"): the member's name
    enum value_type type;
    size_t offset;       // of the member
    size_t count_offset; // VALUE_ITEMS, VALUE_OPTIONS: of the int that counts them
    const char *text;    // the default, as a user writes it; NULL: none
    const char *example; // of a key without a default
    double min, max;     // of every number in it; seconds of a duration
    const char *unit;
    const char *zero;             // a word that stands for 0
    const struct choice *choices; // VALUE_CHOICE; the last has no name
    const struct table *items;    // VALUE_ITEMS
    enum for_kernel kernel;       // of output keys: which kernel knows them
    bool required;
    bool live; // of the file itself: a change takes no restart
    bool own;  // differs from camera to camera: cannot stand under `defaults`
    const char *help;
};

struct table {
    const char *noun; // what one object of it is called
    const struct row *rows;
    int n;
    size_t size;                      // of the struct
    size_t name_offset, place_offset; // tables of named items
    size_t places_offset;
    int name_max, items_max; // bytes of a name; most items in a map
};

extern const struct table root_table, camera_table, output_table;

// The row with that key, or NULL.
const struct row *table_find(const struct table *, const char *key);
// The key of `table` that `key` was probably meant to be, or NULL.
const char *table_nearest(const struct table *, const char *key);
// Whether `row` stands directly in the section `prefix` ("" is the table itself); its last word.
bool row_in_section(const struct row *, const char *prefix);
const char *row_word(const struct row *);
// Whether a row has a member that one scalar or list fills.
bool row_has_value(const struct row *);

#endif
