// Regions of a camera's pictures by name: {door: [x, y, width, height], ...}.
#ifndef FRAMED_CONFIG_ROIS_H
#define FRAMED_CONFIG_ROIS_H

#include "config/types.h"

// Adds a region. Returns 0; -EINVAL with *wrong set: it cannot have that name; -EEXIST: the name
// exists already; or -ENOMEM.
int rois_add(struct rois *, const char *name, struct rect, const char **wrong);
// Makes a copy with its own memory. Returns 0, or -ENOMEM with *ret empty.
int rois_copy(struct rois *ret, const struct rois *);
void rois_free(struct rois *); // empties it
// Returns true if both have the same regions in the same order.
bool rois_equal(const struct rois *, const struct rois *);
const struct roi *rois_find(const struct rois *, const char *name); // NULL: none

#endif
