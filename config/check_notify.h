// Checks the keys of `notify` together.
#ifndef FRAMED_CONFIG_CHECK_NOTIFY_H
#define FRAMED_CONFIG_CHECK_NOTIFY_H

#include "config/mistakes.h"
#include "config/schema.h"

// `given` is indexed by the rows of root_table.
void check_notify(struct mistakes *, const struct config *, const struct given given[]);

#endif
