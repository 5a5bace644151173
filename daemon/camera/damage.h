// The policy `damaged`: which pictures are withheld. One thread uses it.
#ifndef FRAMED_DAEMON_CAMERA_DAMAGE_H
#define FRAMED_DAEMON_CAMERA_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

struct damage {
    enum damaged policy;
    bool holding; // DAMAGED_HOLD: until the next clean keyframe
    int prelude;  // damaged pictures before the first keyframe; -1: it has come
};

void damage_begin(struct damage *, enum damaged policy); // of a stream, perhaps between keyframes
void damage_loss(struct damage *);                       // a picture was lost
bool damage_withholds(struct damage *, uint32_t flags);  // enum framed_flags of the next picture

#endif
