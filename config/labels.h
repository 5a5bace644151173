// Names of a detector's classes: the first is that of class 0.
#ifndef FRAMED_CONFIG_LABELS_H
#define FRAMED_CONFIG_LABELS_H

#include "config/types.h"

// 0, with a copy for text_list_free; -EINVAL with *wrong set; -ENOMEM.
int labels_parse(struct labels *ret, const char *const text[], int n, const char **wrong);
// The class with that label; -1: none has it.
int labels_find(const struct labels *, const char *label);

#endif
