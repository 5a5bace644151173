// Reads the YAML of a configuration: its document, nodes as keys and values, and mappings into the
// objects of tables. Mistakes are noted under the dotted key that was entered.
#ifndef FRAMED_CONFIG_READER_H
#define FRAMED_CONFIG_READER_H

#include <stdbool.h>
#include <yaml.h>

#include "config/expand.h"
#include "config/schema.h"

// Parses a single document in UTF-8, with limited nesting and aliases, so that walking it is
// harmless. Returns 0, and the caller calls yaml_document_delete; -EINVAL with the mistake noted;
// or -ENOMEM.
int document_parse(yaml_document_t *ret, const char *text, size_t length, struct mistakes *);

struct reader {
    yaml_document_t document;
    struct mistakes mistakes;
    char path[KEY_MAX];
    bool no_memory;
    enum references references;
    bool literals;       // keep literal secrets for expand_hide
    struct unit *unit;   // its credentials count as set; NULL: none
    struct place secret; // the first literal secret; line 0: none
    char *written;       // shown in place of the last value read; NULL: the value itself
};

// Appends a key to the path. Returns the argument of reader_leave that removes it.
size_t reader_enter(struct reader *, const char *key);
void reader_leave(struct reader *, size_t);

const yaml_node_t *reader_node(struct reader *, int index);
struct place reader_place(struct reader *, int index);
// Notes the mistake "WHAT (what the row allows)" at the node; without a row, "(key: value)".
void reader_refuse(struct reader *, int index, const struct config_row *row, const char *what);

// Each notes a mistake if it returns NULL or false.
const yaml_node_t *reader_mapping(struct reader *, int index, const struct config_row *row);
const char *reader_key(struct reader *, int index);
// Reads a value into the row's member, and sets r->written, which the caller takes over. Returns
// false without a mistake if a part of it is unknown here; a text then has an x in its place.
bool reader_value(struct reader *, int index, const struct config_row *row, void *object);

// --- mappings: keys, sections and named items (mapping.c)

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
