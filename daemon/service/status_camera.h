// The parts of the status about one camera or one batch. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_CAMERA_H
#define FRAMED_DAEMON_SERVICE_STATUS_CAMERA_H

#include <stdbool.h>

#include "daemon/camera/camera.h"

// `turn`: moves the window of the quantiles.
void status_camera_sample(struct camera *, int64_t now_ns, bool turn);

struct json_t;
// Converts foreign text: if it is not UTF-8, '?' replaces all bytes outside ASCII. NULL: no memory.
struct json_t *status_string(const char *);
struct json_t *status_sink_json(const struct output *);             // its address, or null
struct json_t *status_camera_json(struct camera *, int64_t now_ns); // NULL: out of memory
// For a batch's own output. NULL: out of memory.
struct json_t *status_batch_json(const struct output *, int64_t now_ns);

#endif
