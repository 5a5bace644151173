// What the keys of `nats` and the URLs of NATS servers say together. Adds mistakes.
#ifndef FRAMED_CONFIG_CHECK_NATS_H
#define FRAMED_CONFIG_CHECK_NATS_H

#include "config/mistakes.h"
#include "config/schema.h"

// `given`: of the root's table. Cameras and batches are read.
void check_nats(struct mistakes *, const struct config *, const struct given given[]);

#endif
