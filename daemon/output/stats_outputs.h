// The outputs of a camera that write lines on what its analysis finds.
#ifndef FRAMED_DAEMON_OUTPUT_STATS_OUTPUTS_H
#define FRAMED_DAEMON_OUTPUT_STATS_OUTPUTS_H

#include "daemon/output/subscriptions.h"

// Offers a picture's record to each of them; NULL: it is damaged, or its analysis failed.
// Waits for room only in outputs with `overflow: wait`, and ends the wait when *stop is set. Camera
// thread.
void stats_outputs_offer(const struct subscriptions *, struct event_queue *,
                         const struct frame_info *, const struct scene_record *,
                         const _Atomic bool *stop);
// Accounts for a picture that is not analysed, as it is beyond decoding or above the camera's
// `fps`. Camera thread.
void stats_outputs_lose(const struct subscriptions *, enum loss);

#endif
