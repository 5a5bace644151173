// Numbers in a text, with and without a unit: "29.97", "250ms", "8MiB".
#ifndef FRAMED_CONFIG_QUANTITY_H
#define FRAMED_CONFIG_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct unit_name {
    const char *name;
    double factor; // in seconds or bytes
};

// Largest unit first; the last entry has no name.
extern const struct unit_name duration_units[], span_units[], size_units[];

// Each reads the first `n` bytes of `text`. Returns false unless all belong to the number.
// A decimal number. Hex, infinities, NaN and blanks, which strtod accepts, are refused.
bool number_read(const char *text, size_t n, double *ret);
// A whole number of at most 9 digits, without leading zeros, which YAML 1.1 would read as octal.
bool whole_read(const char *text, size_t n, int *ret);

// Reads a number and its unit, in seconds or bytes; only 0 may lack the unit. Returns NULL, or the
// mistake in the text.
const char *quantity_read(const char *text, const struct unit_name *units, double *ret);
// Prints "100ms to 1h; units h, m, s, ms".
void quantity_print_range(FILE *, double min, double max, const struct unit_name *units);

#endif
