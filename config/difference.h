// Differences between two configurations.
#ifndef FRAMED_CONFIG_DIFFERENCE_H
#define FRAMED_CONFIG_DIFFERENCE_H

#include "config/config.h"

enum config_change { CHANGE_ADDED, CHANGE_REMOVED, CHANGE_CHANGED };

// Calls `each` for every camera, output and batch that is added, removed or has different values,
// and for the root's own values, in the order of the tables and then of `after`. `path` is dotted:
// "cameras.gate.outputs.detector", "" for the root. `keys` lists the changed keys: "size, fit".
// Both are valid during the call. A camera that is paused or resumed has "paused" among its keys.
void config_difference(const struct config *before, const struct config *after,
                       void (*each)(void *opaque, const char *path, enum config_change,
                                    const char *keys),
                       void *opaque);

#endif
