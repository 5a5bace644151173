// Regions of cameras' pictures that outputs show.
#ifndef FRAMED_CONFIG_REGIONS_H
#define FRAMED_CONFIG_REGIONS_H

#include "config/config.h"
#include "config/mistakes.h"

// Must run after batches have their members. Gives each output with a `roi` those regions of its
// camera, and notes regions that the camera lacks. Returns 0 or -ENOMEM.
int regions_choose(struct mistakes *, struct config *);

#endif
