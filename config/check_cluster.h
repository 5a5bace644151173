// Mistakes of `cluster` as a whole, and of cameras that ask for labels of nodes.
#ifndef FRAMED_CONFIG_CHECK_CLUSTER_H
#define FRAMED_CONFIG_CHECK_CLUSTER_H

#include "config/mistakes.h"
#include "config/schema.h"

// `given`: of the root's table.
void check_cluster(struct mistakes *, const struct config *, const struct given[]);

#endif
