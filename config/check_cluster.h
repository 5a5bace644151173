// Checks `cluster` as a whole, and cameras that require labels of nodes.
#ifndef FRAMED_CONFIG_CHECK_CLUSTER_H
#define FRAMED_CONFIG_CHECK_CLUSTER_H

#include "config/mistakes.h"
#include "config/schema.h"

// `given` is indexed by the rows of root_table.
void check_cluster(struct mistakes *, const struct config *, const struct given[]);

#endif
