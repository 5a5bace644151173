// Reads YAML mappings into the objects of tables: keys, sections and named items.
#ifndef FRAMED_CONFIG_MAPPING_H
#define FRAMED_CONFIG_MAPPING_H

#include "config/reader.h"

struct loader {
    struct reader reader;
    struct config *config;
    const char *assigned; // see struct file_change; of the current file
    // Each camera and output starts as a copy of these: the rows' defaults, then the file's.
    struct camera_config camera;
    struct output_config output;
    long default_bytes, copied_bytes; // bytes of the file's defaults in one copy, and in all copies
};

enum { COPIED_BYTES_MAX = 64 << 20 };

// An object that a mapping fills. A mapping under `defaults` fills two: a camera and an output.
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
// `given`, and read after all keys beside them.
void mapping_read(struct loader *, const yaml_node_t *, struct mapping *, const char *section);
// Returns true if the value is the row's word.
bool mapping_is_word(struct loader *, int index, const struct config_row *);
// Returns true if the configuration may lack the row's items, by the keys that are read already.
bool mapping_may_lack(const struct config *, const struct config_row *);
// Appends a row's items to the owner's. Each begins as a copy of `prototype`.
void mapping_read_items(struct loader *, const struct config_row *, int index, void *owner,
                        const void *prototype);

#endif
