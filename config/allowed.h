// What the value of a row may be, in words.
#ifndef FRAMED_CONFIG_ALLOWED_H
#define FRAMED_CONFIG_ALLOWED_H

#include "config/schema.h"

// "100ms to 1h; units h, m, s, ms", cut to `size` bytes; returns `to`.
char *row_allowed(const struct row *row, char *to, size_t size);

#endif
