// The policy `damaged`: withholds pictures, and marks pictures that refer to damaged ones. One
// thread uses it.
#ifndef FRAMED_DAEMON_DECODE_CORRUPTION_H
#define FRAMED_DAEMON_DECODE_CORRUPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

struct corruption_picture {
    int64_t serial;     // of its packet
    int64_t whole_from; // as recovery_packet returns it
    bool harmed;        // damaged itself, not for lack of a reference
};

struct corruption {
    enum damaged policy;
    bool holding;           // DAMAGED_HOLD: until the next clean keyframe
    int tainted;            // pictures still to come that may be made from a damaged one
    bool missing_reference; // a reference never came: affects all pictures up to a keyframe
    int leading;            // damaged pictures before the first keyframe; -1: it has come
    int64_t broken;         // serial of the newest packet that is damaged or missing
};

void corruption_begin(struct corruption *, enum damaged); // of a stream, perhaps between keyframes
// Call when the packet's picture refers to one that never came.
void corruption_missing_reference(struct corruption *, int64_t serial);
void corruption_loss(struct corruption *, int64_t serial); // the packet's picture was lost
// Takes the next picture in output order. `*flags`, enum framed_flags, marks it if it is damaged.
// Sets the flag also for pictures after a damaged or lost one, up to a clean keyframe or a recovery
// point; after a recovery point, a picture that only lacked references no longer counts as damaged.
// Returns true if the policy withholds the picture.
bool corruption_withholds(struct corruption *, const struct corruption_picture *, uint32_t *flags);

#endif
