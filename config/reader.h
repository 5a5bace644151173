// Reads nodes of a YAML document as keys, values and mappings; what is wrong with one is noted
// under the dotted key that has been entered.
#ifndef FRAMED_CONFIG_READER_H
#define FRAMED_CONFIG_READER_H

#include "config/document.h"
#include "config/schema.h"

struct reader {
    yaml_document_t document;
    struct mistakes mistakes;
    char path[KEY_MAX];
    bool no_memory;
    struct unit *unit;   // whose credentials count as set; NULL: none
    struct place secret; // the first that the text itself holds; line 0: none
};

// Appends a key to the path; returns what reader_leave needs to take it away.
size_t reader_enter(struct reader *, const char *key);
void reader_leave(struct reader *, size_t);

const yaml_node_t *reader_node(struct reader *, int index);
struct place reader_place(struct reader *, int index);
// Notes "WHAT (what the row allows)" at the node.
void reader_refuse(struct reader *, int index, const struct config_row *row, const char *what);

// Each notes a mistake where it returns NULL or false.
// Without a row it may have any keys.
const yaml_node_t *reader_mapping(struct reader *, int index, const struct config_row *row);
const char *reader_key(struct reader *, int index);
// False without a mistake: the value is not known here, since only the unit has it; a text holds x
// in its place.
bool reader_value(struct reader *, int index, const struct config_row *row, void *object);

#endif
