// The parts of the status that are of what analyses find in cameras' pictures. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_SCENE_H
#define FRAMED_DAEMON_SERVICE_STATUS_SCENE_H

#include "daemon/service/metrics.h"

struct json_t;
// Null where no picture of the camera was analysed. NULL: out of memory.
struct json_t *status_scene_json(struct camera *, int64_t now_ns);
// The last picture of each such camera, all of it, as lines of `kernel: stats` have it, in a list.
// The caller frees it; NULL: out of memory.
char *status_scenes_text(const struct metrics *);

#endif
