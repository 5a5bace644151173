// Lists of "name: value" for libavformat.
#ifndef FRAMED_CONFIG_OPTIONS_H
#define FRAMED_CONFIG_OPTIONS_H

#include "config/reader.h"

// Reads the mapping at `index` into the list that `row` names in `object`, in place of what was
// there. False: a mistake was noted.
bool options_read(struct reader *, int index, const struct row *row, void *object);
// Gives the list its own copy of what it shares; 0, or -ENOMEM and what could be copied.
int options_own(const struct row *row, void *object);
void options_free(const struct row *row, void *object); // leaves it empty

#endif
