// Reads YAML mappings into the objects of tables: keys, sections and named items.
#ifndef FRAMED_CONFIG_MAPPING_H
#define FRAMED_CONFIG_MAPPING_H

#include "config/reader.h"

struct loader {
    struct reader reader;
    struct config *config;
    const char *assigned; // of struct file_change, of the file that is read
    // Each camera and output starts as a copy of these: the rows' defaults, then the file's.
    struct camera_config camera;
    struct output_config output;
    long default_bytes, copied_bytes; // that the file's part takes in one copy, and in all of them
};

enum { COPIED_BYTES_MAX = 64 << 20 };

// An object that a mapping fills. Under `defaults` a mapping fills two: a camera and an output.
struct target {
    const struct table *table;
    void *object;
    struct given given[TABLE_ROWS_MAX];
    bool off; // a required key has a value that is gone: the object is left out
};

struct mapping {
    struct target *targets;
    int n;
    bool defaults;
    bool drop_in; // the root of a drop-in file
};

// Reads the keys of `section` ("": of the targets themselves). Items and defaults are only noted in
// `given`: they are read when all keys beside them are known.
void mapping_read(struct loader *, const yaml_node_t *, struct mapping *, const char *section);
// Whether the value is the row's word.
bool mapping_is_word(struct loader *, int index, const struct config_row *);
// Whether the configuration may do without the row's items, as far as its keys are read.
bool mapping_may_lack(const struct config *, const struct config_row *);
// Appends the items of a row to those that the owner has. Each begins as a copy of `prototype`.
void mapping_read_items(struct loader *, const struct config_row *, int index, void *owner,
                        const void *prototype);

#endif
