// Names of a detector's classes, from class 0 on.
#ifndef FRAMED_CONFIG_LABELS_H
#define FRAMED_CONFIG_LABELS_H

#include "config/types.h"

// Returns 0 with a copy for text_list_free; -EINVAL with *wrong set; or -ENOMEM.
int labels_parse(struct labels *ret, const char *const text[], int n, const char **wrong);
// Returns the class with that label, or -1.
int labels_find(const struct labels *, const char *label);

#endif
