// Whether two values of a row mean the same.
#ifndef FRAMED_CONFIG_EQUAL_H
#define FRAMED_CONFIG_EQUAL_H

#include "config/schema.h"

// Of the members that `row`, which has a value, names in two objects.
bool value_equal(const struct row *row, const void *a, const void *b);

#endif
