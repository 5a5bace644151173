// Descriptions of a key's values, in words and as JSON schemas, from its row's limits and choices.
#ifndef FRAMED_CONFIG_DESCRIBE_H
#define FRAMED_CONFIG_DESCRIBE_H

#include <stdio.h>

#include "config/types.h"

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
