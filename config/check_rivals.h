// Outputs that claim the same socket, file, stream or shared memory.
#ifndef FRAMED_CONFIG_CHECK_RIVALS_H
#define FRAMED_CONFIG_CHECK_RIVALS_H

#include "config/config.h"
#include "config/mistakes.h"

// Notes each output whose sink, detections.sink or shared memory an earlier output has already;
// batches come after cameras. Takes n log n steps for n outputs. Returns 0 or -ENOMEM.
int check_rivals(struct mistakes *, const struct config *);

#endif
