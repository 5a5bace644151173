// Members of batches: each camera that a batch's patterns choose gets an output of its name.
#ifndef FRAMED_CONFIG_MEMBERS_H
#define FRAMED_CONFIG_MEMBERS_H

#include "config/config.h"
#include "config/mistakes.h"

// Must run after all cameras and batches are read. Chooses the capacity of each batch, appends a
// copy of the batch to each member's outputs, and notes each camera that cannot be a member, each
// batch without members, and each camera without any output. Returns 0 or -ENOMEM.
int members_join(struct mistakes *, struct config *);

#endif
