// The policy `damaged`: decides which pictures are withheld, and marks those that refer to damaged
// pictures. One thread uses it.
#ifndef FRAMED_DAEMON_DECODE_CORRUPTION_H
#define FRAMED_DAEMON_DECODE_CORRUPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

struct corruption {
    enum damaged policy;
    bool holding;           // DAMAGED_HOLD: until the next clean keyframe
    int tainted;            // pictures still to come that may be made from a damaged one
    bool missing_reference; // a picture was made from one that never came: so are all up to a
                            // keyframe
    int leading;            // damaged pictures before the first keyframe; -1: it has come
};

void corruption_begin(struct corruption *,
                      enum damaged policy); // of a stream, perhaps between keyframes
void corruption_missing_reference(
    struct corruption *);                  // the decoder missed a picture that one is made from
void corruption_loss(struct corruption *); // a picture was lost
// Of the next picture, whose enum framed_flags say what is wrong with itself: they will also say
// that it follows a damaged or lost one, with no clean keyframe between.
bool corruption_withholds(struct corruption *, uint32_t *flags);

#endif
