// Labels of a node, which cameras may require: {vlan: a, floor: 2}.
#ifndef FRAMED_CONFIG_NODE_LABELS_H
#define FRAMED_CONFIG_NODE_LABELS_H

#include "config/types.h"

// Returns 0; -EINVAL with the mistake in *wrong; or -EEXIST: the name exists already.
int node_labels_add(struct node_labels *, const char *name, const char *value, const char **wrong);
// Returns true if a text can be the name of a site, of a node or of a label.
bool is_cluster_name(const char *text, size_t size);

#endif
