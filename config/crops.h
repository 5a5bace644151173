// Rules of outputs with `crops`: between their keys, and between them and the output in crops.of.
#ifndef FRAMED_CONFIG_CROPS_H
#define FRAMED_CONFIG_CROPS_H

#include "config/config.h"
#include "config/mistakes.h"

// Notes each rule that such an output breaks, and chooses its capacity and overflow. Values from
// `defaults` that crops cannot have are dropped. Must run after members_join: crops.of may name a
// share in a batch.
void crops_settle(struct mistakes *, struct config *);

#endif
