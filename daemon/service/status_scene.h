// The parts of the status about analyses of cameras' pictures. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_SCENE_H
#define FRAMED_DAEMON_SERVICE_STATUS_SCENE_H

#include "daemon/service/metrics.h"

struct json_t;
// Null if no picture of the camera was analysed. NULL: out of memory.
struct json_t *status_scene_json(struct camera *, int64_t now_ns);
// Returns a list of the last picture of each such camera, complete as in lines of `kernel: stats`,
// for free(); NULL: out of memory.
char *status_scenes_text(const struct metrics *);

#endif
