// Labels of a node, which cameras may ask for: {vlan: a, floor: 2}.
#ifndef FRAMED_CONFIG_NODE_LABELS_H
#define FRAMED_CONFIG_NODE_LABELS_H

#include "config/types.h"

// 0; -EINVAL with what is wrong in *wrong; -EEXIST: the name is there already.
int node_labels_add(struct node_labels *, const char *name, const char *value, const char **wrong);
// Whether a text can be the name of a site, of a node or of a label.
bool is_cluster_name(const char *text, size_t size);

#endif
