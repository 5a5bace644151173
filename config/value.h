// Values of the configuration: texts in, members out, and members printed as YAML. The table in
// value.c has one row per type, with its allowed texts and how it is compared, copied, freed and
// described.
//
// All functions require a row that holds a value, with a type less than VALUE_TYPES. `object` is
// the struct that row->offset counts from.
#ifndef FRAMED_CONFIG_VALUE_H
#define FRAMED_CONFIG_VALUE_H

#include <stdio.h>

#include "config/expand.h"
#include "config/types.h"

// Reads one text, or the `n` texts of a list, into the member. Returns 0; -EINVAL with the mistake
// in *wrong ("is out of range"), which never quotes the text; or -ENOMEM. On error the member keeps
// its value.
int value_parse(const struct config_row *, void *object, const char *const text[], int n,
                const char **wrong);
// Adds "name: value" to a member that is a map; the value is one text, or the `n` texts of a list.
// Returns 0; -EINVAL with *wrong as value_parse; -EEXIST: the name exists; or -ENOMEM.
int value_add(const struct config_row *, void *object, const char *name, const char *const text[],
              int n, struct place, const char **wrong);
// Returns true if the members of two objects mean the same.
bool value_equal(const struct config_row *, const void *a, const void *b);
// Gives the member its own copy of memory that it shares after a memcpy. Returns 0, or -ENOMEM with
// the member empty.
int value_own(const struct config_row *, void *object);
// Frees the member's memory and empties it; numbers keep their value.
void value_free(const struct config_row *, void *object);

bool value_is_list(const struct config_row *); // can be written as a list
// Returns the most "name: value" pairs of a map; 0: it is no map.
int value_pairs(const struct config_row *);
// Returns true if any text is valid, so a secret too; an unknown part does not make it invalid.
bool value_is_text(const struct config_row *);
// Returns true if it can hold a secret: a text, or an address with one in it.
bool value_may_be_secret(const struct config_row *);
void *value_member(const struct config_row *, void *object);

// --- printing: as YAML, which config_load reads as the same values unless secrets are hidden

// Returns true if the member holds a value; one without a default may hold none.
bool value_is_set(const struct config_row *, const void *object);
// SECRETS_HIDDEN: *** for the values of secret rows, and URLs as config_url_shown writes them.
enum secrecy { SECRETS_HIDDEN, SECRETS_SHOWN };
// Prints a text in quotes. Does not change a dollar sign.
void value_print_text(FILE *, const char *text);
// Prints the member, which must be set, without the key.
void value_print(FILE *, const struct config_row *, const void *object, enum secrecy);

// --- descriptions of a key's values, from its row's limits and choices

// Prints the values of the key: in words ("WIDTHxHEIGHT, each 1 to 16384"), and as JSON schemas,
// with a match in at least one.
void value_print_allowed(FILE *, const struct config_row *);
void value_print_schemas(FILE *, const struct config_row *);
// Prints row->text as JSON.
void value_print_default(FILE *, const struct config_row *);
// Prints `text`, and replaces these words by values of `row`:
//   @range      "0 to 1000 frames/s"
//   @choices    "tcp | udp"
//   @names      the same as JSON: "tcp", "udp" in quotes
//   @durations  "100ms to 1h; units h, m, s, ms"
//   @sizes      "0 to 1GiB; units GiB, MiB, KiB"
//   @duration, @size, @integer, @number    the JSON schema of one
//   @integer4, @number4                    the JSON schema of a list of four, or any other number
void describe_print(FILE *, const struct config_row *row, const char *text);

#endif
