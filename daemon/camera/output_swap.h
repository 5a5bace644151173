// The outputs that a camera's thread fills, and those that it is to go over to: the loop thread
// gives them, the camera's takes them between two frames. One that it has let go of is marked as
// left.
#ifndef FRAMED_DAEMON_CAMERA_OUTPUT_SWAP_H
#define FRAMED_DAEMON_CAMERA_OUTPUT_SWAP_H

#include <pthread.h>

#include "daemon/transform/transform.h"

struct output_swap {
    pthread_mutex_t lock; // what follows
    struct outputs now;   // the camera's thread alone changes it, and reads it without the lock
    struct outputs next;
    _Atomic bool waits; // `next` was not taken yet; may be read without the lock
};

void output_swap_open(struct output_swap *, const struct outputs *now);
void output_swap_close(struct output_swap *);
// Loop thread: these are the camera's outputs from its next frame on, whatever was given before.
void output_swap_give(struct output_swap *, const struct outputs *);

// --- camera thread
// Goes over to what was given last; true: something was. Cheap, to be called for every frame. Slots
// of outputs that are new join the device of *lease, if any, those of others leave it.
bool output_swap_follow(struct output_swap *, struct transform *, const struct device_lease *lease);
void output_swap_join(struct output_swap *,
                      const struct device_lease *); // all slots join that device
void output_swap_leave(struct output_swap *);

#endif
