// The own outputs of batches, from the first share in each to its end. `batches` is their list, by
// output.next; `cameras` are the ones that stay. Loop thread only.
#ifndef FRAMED_DAEMON_SUPERVISOR_BATCHES_H
#define FRAMED_DAEMON_SUPERVISOR_BATCHES_H

#include "daemon/camera/camera.h"

// True if one of the cameras is in the batch, ended or not; else a reload has removed or replaced
// the batch.
bool batch_has_cameras(const struct output *batch, struct camera *const cameras[], int n);
// True if a camera that has not ended delivers to the batch.
bool batch_is_filled(const struct output *batch, struct camera *const cameras[], int n);
// Starts the collectors of batches that are filled. Logs a thread that cannot be started; the next
// call tries again.
void batches_start(struct output *batches, struct camera *const cameras[], int n,
                   struct event_queue *);
// Call when `ended` has ended: finishes the sinks of its batches that no camera fills any more.
void batches_finish(struct output *batches, struct camera *const cameras[], int n,
                    const struct camera *ended, int grace_ms);
// Closes batches without shares whose sinks are closed and whose collectors have ended.
void batches_forget(struct output **batches);
// Closes all batches, once no more events are handled.
void batches_close(struct output **batches);
// Ends all collectors, once no camera has a thread.
void batches_stop(struct output *batches);

#endif
