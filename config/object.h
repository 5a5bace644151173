// Objects of a table (a camera, an output): begun with the defaults of its rows, copied, freed.
#ifndef FRAMED_CONFIG_OBJECT_H
#define FRAMED_CONFIG_OBJECT_H

#include "config/schema.h"

int object_init(const struct table *, void *object); // a zeroed one; 0 or -ENOMEM
// Gives `object` its own copies of what a memcpy made it share with another; what cannot be copied
// is left empty. 0 or -ENOMEM.
int object_own(const struct table *, void *object);
void object_free(const struct table *, void *object); // what it owns, not itself; leaves it empty

char **object_name(const struct table *, void *object);
struct place *object_place(const struct table *, void *object);
// The objects of a VALUE_ITEMS row and their number.
void **object_items(const struct row *, void *object);
int *object_count(const struct row *, void *object);

#endif
