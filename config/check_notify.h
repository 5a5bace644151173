// What the keys of `notify` say together. Adds mistakes.
#ifndef FRAMED_CONFIG_CHECK_NOTIFY_H
#define FRAMED_CONFIG_CHECK_NOTIFY_H

#include "config/mistakes.h"
#include "config/schema.h"

// `given`: of the root's table.
void check_notify(struct mistakes *, const struct config *, const struct given given[]);

#endif
