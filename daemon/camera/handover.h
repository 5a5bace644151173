// The outputs that a camera's thread fills, and those that it is to go over to: the loop thread
// gives them, the camera's takes them between two frames. One that it has let go of is marked as
// left.
#ifndef FRAMED_DAEMON_CAMERA_HANDOVER_H
#define FRAMED_DAEMON_CAMERA_HANDOVER_H

#include <pthread.h>

#include "daemon/camera/pipeline.h"

struct handover {
    pthread_mutex_t lock; // what follows
    struct outputs now;   // the camera's thread alone changes it, and reads it without the lock
    struct outputs next;
    _Atomic bool waits; // `next` was not taken yet; may be read without the lock
};

void handover_open(struct handover *, const struct outputs *now);
void handover_close(struct handover *);
// Loop thread: these are the camera's outputs from its next frame on, whatever was given before.
void handover_give(struct handover *, const struct outputs *);

// --- camera thread
// Goes over to what was given last; true: something was. Cheap, to be called for every frame. Slots
// of outputs that are new join the side that *use has joined, if any, those of others leave it.
bool handover_follow(struct handover *, struct pipeline *, const struct engine_use *use);
void handover_join(struct handover *, const struct engine_use *); // all slots join that side
void handover_leave(struct handover *);

#endif
