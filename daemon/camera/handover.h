// The outputs of a camera on their way from the loop thread, which adds and takes away, to the
// camera's, which goes over to them between two frames. One that the camera has let go of is marked
// as left.
#ifndef FRAMED_DAEMON_CAMERA_HANDOVER_H
#define FRAMED_DAEMON_CAMERA_HANDOVER_H

#include <pthread.h>

#include "daemon/output.h"

struct handover {
    pthread_mutex_t lock; // what follows
    struct outputs now;   // that the camera works with
    struct outputs next;
    _Atomic bool waits; // `next` was not taken yet; may be read without the lock
};

void handover_open(struct handover *, const struct outputs *now);
void handover_close(struct handover *);
// Loop thread: these are the camera's outputs from its next frame on, whatever was given before.
void handover_give(struct handover *, const struct outputs *);
// Camera thread: whether to call handover_take; cheap, to be asked for every frame.
bool handover_waits(const struct handover *);
// Camera thread: the outputs from now on. The caller marks those as left that it then lets go of.
void handover_take(struct handover *, struct outputs *ret);

#endif
