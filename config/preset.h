// Presets: the conventions of frameworks, as values of an output's keys.
#ifndef FRAMED_CONFIG_PRESET_H
#define FRAMED_CONFIG_PRESET_H

#include "config/schema.h"

// Where the file sets `preset`, sets the keys that presets set but the file does not set beside it.
// A preset has a value for each of them, so that it replaces whatever held before. Likewise
// `tiles.size` sets `size`. `given` goes by the rows of output_table.
void preset_apply(struct output_config *output, const struct given given[]);
// Gives all of these keys with their values as a user writes them, one text or a list of three.
// Where a key comes twice, the later value holds.
void preset_each(enum preset,
                 void (*each)(void *opaque, const char *key, const char *const text[], int n),
                 void *opaque);
// Sets all of these keys to what output->preset says.
void preset_values(struct output_config *output);

#endif
