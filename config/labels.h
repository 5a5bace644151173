// Names of a detector's classes: the first is that of class 0.
#ifndef FRAMED_CONFIG_LABELS_H
#define FRAMED_CONFIG_LABELS_H

#include <stdbool.h>

#include "config/types.h"

// 0, with a copy for labels_free; -EINVAL with *wrong set; -ENOMEM.
int labels_parse(struct labels *ret, const char *const text[], int n, const char **wrong);
int labels_copy(struct labels *ret, const struct labels *from); // 0 or -ENOMEM
void labels_free(struct labels *);
bool labels_equal(const struct labels *, const struct labels *);
// The one behind `label`, the first one for NULL; NULL: there is no further one.
const char *labels_next(const struct labels *, const char *label);
// The class with that label; -1: none has it.
int labels_find(const struct labels *, const char *label);

#endif
