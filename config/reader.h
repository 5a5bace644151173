// Reads nodes of a YAML document as keys, values and mappings. Mistakes are noted under the dotted
// key that was entered.
#ifndef FRAMED_CONFIG_READER_H
#define FRAMED_CONFIG_READER_H

#include "config/document.h"
#include "config/expand.h"
#include "config/schema.h"

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

#endif
