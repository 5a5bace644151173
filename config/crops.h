// Outputs with `crops`: rules between their keys, and between them and the output that they are of.
#ifndef FRAMED_CONFIG_CROPS_H
#define FRAMED_CONFIG_CROPS_H

#include "config/config.h"
#include "config/mistakes.h"

// Notes every rule that such an output breaks, and settles its capacity and overflow. What
// `defaults` say and crops cannot have gives way. After members_join: a share in a batch may be
// what crops are of.
void crops_settle(struct mistakes *, struct config *);

#endif
