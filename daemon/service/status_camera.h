// The parts of the status that are one camera's, or one batch's. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_CAMERA_H
#define FRAMED_DAEMON_SERVICE_STATUS_CAMERA_H

#include <stdbool.h>

#include "daemon/camera/camera.h"

enum { STATUS_SAMPLE_MS = 1000 }; // between samples

// `turn`: the window that quantiles are of moves on.
void status_camera_sample(struct camera *, int64_t now_ns, bool turn);

// Share of its thread's time that went into the stage of late, 0 to 1, with a submit that has not
// ended.
double status_camera_share(const struct camera *, enum stage, int64_t now_ns);

struct json_t;
// Of a text that others wrote: bytes that are no UTF-8 become '?'. NULL: out of memory.
struct json_t *status_string(const char *);
struct json_t *status_sink_json(const struct output *);             // its address, or null
struct json_t *status_camera_json(struct camera *, int64_t now_ns); // NULL: out of memory
// Of a batch's own output. NULL: out of memory.
struct json_t *status_batch_json(const struct output *, int64_t now_ns);

#endif
