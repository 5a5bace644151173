// The members of batches: every camera that a batch's patterns choose gets an output of its name.
#ifndef FRAMED_CONFIG_MEMBERS_H
#define FRAMED_CONFIG_MEMBERS_H

#include "config/config.h"
#include "config/mistakes.h"

// Once all cameras and batches are read: settles the capacity of each batch, appends a copy of the
// batch to the outputs of each member, and notes each camera that cannot be a member, each batch
// without members, and each camera without any output. 0 or -ENOMEM.
int members_join(struct mistakes *, struct config *);

#endif
