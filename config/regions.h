// The regions that outputs show of their cameras' pictures.
#ifndef FRAMED_CONFIG_REGIONS_H
#define FRAMED_CONFIG_REGIONS_H

#include "config/config.h"
#include "config/mistakes.h"

// Once batches have their members: gives each output with a `roi` those regions of its camera, and
// notes where the camera lacks them. 0 or -ENOMEM.
int regions_choose(struct mistakes *, struct config *);

#endif
