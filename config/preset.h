// Presets: conventions of frameworks, as values of an output's keys.
#ifndef FRAMED_CONFIG_PRESET_H
#define FRAMED_CONFIG_PRESET_H

#include "config/schema.h"

// If the file sets `preset`, sets the keys of presets that the file does not set beside it. A
// preset has a value for each of them, which replaces any earlier value. `tiles.size` sets `size`
// in the same way. `given` is indexed by the rows of output_table.
void preset_apply(struct output_config *output, const struct given given[]);
// Calls `each` for all of these keys with their values as a user writes them, one text or a list of
// three. If a key comes twice, the later value holds.
void preset_each(enum preset,
                 void (*each)(void *opaque, const char *key, const char *const text[], int n),
                 void *opaque);
// Sets all of these keys to the values of output->preset.
void preset_values(struct output_config *output);

#endif
