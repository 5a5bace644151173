// Values of the configuration: texts in, members out. What each type takes and how it is compared,
// copied, freed and described is one row of the table in value.c.
//
// All functions are for rows that hold a value, whose type is less than VALUE_TYPES. `object` is
// the struct that row->offset counts from.
#ifndef FRAMED_CONFIG_VALUE_H
#define FRAMED_CONFIG_VALUE_H

#include <stdio.h>

#include "config/expand.h"
#include "config/types.h"

// Reads one text, or the `n` texts of a list, into the member. 0; -EINVAL with what is wrong in
// *wrong ("is out of range"), which never quotes the text; -ENOMEM. On error the member keeps its
// value.
int value_parse(const struct config_row *, void *object, const char *const text[], int n,
                const char **wrong);
// Adds "name: value" to a member that is a map; the value is one text, or the `n` texts of a list.
// 0; -EINVAL with *wrong as value_parse; -EEXIST: the name is there already; -ENOMEM.
int value_add(const struct config_row *, void *object, const char *name, const char *const text[],
              int n, struct place, const char **wrong);
// Whether the members of two objects mean the same.
bool value_equal(const struct config_row *, const void *a, const void *b);
// Gives the member its own copy of the memory that a memcpy made it share. 0; -ENOMEM, and the
// member is empty.
int value_own(const struct config_row *, void *object);
// Frees the member's memory and empties it; numbers keep their value.
void value_free(const struct config_row *, void *object);

// Prints what the key can hold: in words ("WIDTHxHEIGHT, each 1 to 16384"), and as JSON schemas, at
// least one of which it must meet.
void value_print_allowed(FILE *, const struct config_row *);
void value_print_schemas(FILE *, const struct config_row *);
// Prints row->text as JSON.
void value_print_default(FILE *, const struct config_row *);

bool value_is_list(const struct config_row *); // can be written as a list
// Most "name: value" pairs that it is written as; 0: it is no map.
int value_pairs(const struct config_row *);
// Can hold any text, so a secret too; a part that is not known here does not make it invalid.
bool value_is_text(const struct config_row *);
// Can hold a secret: a text, or an address with one in it.
bool value_may_be_secret(const struct config_row *);
void *value_member(const struct config_row *, void *object);

#endif
