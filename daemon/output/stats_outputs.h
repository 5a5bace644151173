// Outputs that write lines about a camera's analysis.
#ifndef FRAMED_DAEMON_OUTPUT_STATS_OUTPUTS_H
#define FRAMED_DAEMON_OUTPUT_STATS_OUTPUTS_H

#include "daemon/output/subscriptions.h"

// Offers a picture's record to each of these outputs; NULL: the picture is damaged, or its analysis
// failed. Waits for room only in outputs with `overflow: wait`, until *stop is set. Camera thread.
void stats_outputs_offer(const struct subscriptions *, struct event_queue *,
                         const struct frame_info *, const struct scene_record *,
                         const _Atomic bool *stop);
// Counts a picture without analysis as lost: it cannot be decoded or exceeds the camera's `fps`.
// Camera thread.
void stats_outputs_lose(const struct subscriptions *, enum loss);

#endif
