// The configuration as it came out of its files.
#ifndef FRAMED_CONFIG_EFFECTIVE_H
#define FRAMED_CONFIG_EFFECTIVE_H

#include <stdio.h>

#include "config/config.h"

// Prints YAML with the values of `defaults`, presets and drop-in files in their places. Keys that
// hold their default are left out. A value with a reference is printed as it was written; ***
// stands for any other secret. Otherwise it loads as the same configuration. A preset is a comment:
// what it sets stands there. So is that a camera is paused, which a drop-in file may say.
void config_print_effective(FILE *, const struct config *);
// Prints a drop-in file with this camera alone, secrets and all, which loads as the same camera in
// any configuration: it takes no `defaults`. Left out are `on`, and outputs that batches gave it.
void config_print_camera(FILE *, const struct camera_config *);

#endif
