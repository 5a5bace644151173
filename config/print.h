// Prints the tables of keys, which are the daemon's own documentation of its configuration, and the
// effective configuration, the result of all files.
#ifndef FRAMED_CONFIG_PRINT_H
#define FRAMED_CONFIG_PRINT_H

#include <stdio.h>

#include "config/config.h"

void config_print_defaults(FILE *); // a commented, loadable configuration with every key
void config_print_schema(FILE *);   // JSON Schema, draft-07
void config_print_keys(FILE *);     // a Markdown table of every key

// Prints YAML with the values of `defaults`, presets and drop-in files in their places, without
// keys that hold their default. Prints a value with a reference as it was written, and *** for any
// other secret; the rest loads as the same configuration. A preset is only a comment, as its values
// are printed. `paused` of a camera is a comment, as a drop-in file may set it.
void config_print_effective(FILE *, const struct config *);
// Prints a drop-in file with this camera alone, including secrets. It loads as the same camera in
// any configuration, as it takes no `defaults`. Omits `on`, and outputs that come from batches.
void config_print_camera(FILE *, const struct camera_config *);

#endif
