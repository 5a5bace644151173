// Regions of a camera's pictures by name: {door: [x, y, width, height], ...}.
#ifndef FRAMED_CONFIG_ROIS_H
#define FRAMED_CONFIG_ROIS_H

#include "config/types.h"

// Adds a region. 0; -EINVAL: it cannot have that name, and *wrong says why; -EEXIST: the name is
// there already; -ENOMEM.
int rois_add(struct rois *, const char *name, struct rect, const char **wrong);
// A copy with memory of its own. 0; -ENOMEM, and *ret is empty.
int rois_copy(struct rois *ret, const struct rois *);
void rois_free(struct rois *); // empties it
// Whether both have the same regions in the same order.
bool rois_equal(const struct rois *, const struct rois *);
const struct roi *rois_find(const struct rois *, const char *name); // NULL: there is none

#endif
