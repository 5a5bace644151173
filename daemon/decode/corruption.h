// The policy `damaged`: decides which pictures are withheld, and marks those that refer to damaged
// pictures. One thread uses it.
#ifndef FRAMED_DAEMON_DECODE_CORRUPTION_H
#define FRAMED_DAEMON_DECODE_CORRUPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

struct corruption_picture {
    int64_t serial;     // of its packet
    int64_t whole_from; // as recovery_packet returns it
    bool harmed;        // damaged itself, not for want of pictures before it
};

struct corruption {
    enum damaged policy;
    bool holding;           // DAMAGED_HOLD: until the next clean keyframe
    int tainted;            // pictures still to come that may be made from a damaged one
    bool missing_reference; // a picture was made from one that never came: so are all up to a
                            // keyframe
    int leading;            // damaged pictures before the first keyframe; -1: it has come
    int64_t broken;         // serial of the newest packet that is damaged or missing
};

void corruption_begin(struct corruption *, enum damaged); // of a stream, perhaps between keyframes
// The packet refers to a picture that never came.
void corruption_missing_reference(struct corruption *, int64_t serial);
void corruption_loss(struct corruption *, int64_t serial); // the packet's picture was lost
// Takes the next picture in output order. `*flags`, enum framed_flags, say whether it is damaged;
// returns with the flag for pictures behind a damaged or lost one as well, up to a clean keyframe
// or a recovery point, from which on a picture that only lacked references is not damaged any more.
// Returns whether the policy withholds the picture.
bool corruption_withholds(struct corruption *, const struct corruption_picture *, uint32_t *flags);

#endif
