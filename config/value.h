// Typed values of the rows: text in, member out.
#ifndef FRAMED_CONFIG_VALUE_H
#define FRAMED_CONFIG_VALUE_H

#include "config/schema.h"

enum { VALUE_ITEMS_MAX = 6 }; // entries of the longest list

struct value_unit {
    const char *name;
    double factor; // of seconds or bytes
};

// Largest first; the last has no name.
extern const struct value_unit duration_units[], size_units[];

bool value_is_list(const struct row *row); // may be written as a list
void *value_member(const struct row *row, void *object);

// Reads one text, or those of a list, into the member of `object` that `row` names. Returns 0;
// -EINVAL with what is wrong in *wrong ("is out of range"), which never quotes the text; -ENOMEM.
// On error the member keeps what it had.
int value_parse(const struct row *row, void *object, const char *const text[], int n,
                const char **wrong);
#endif
