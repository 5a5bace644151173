// The part of the status that says what bounds the box. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_BOUND_H
#define FRAMED_DAEMON_SERVICE_STATUS_BOUND_H

#include "daemon/service/metrics.h"

// Sampled together; zeroed it is ready.
struct load {
    struct meter own, all; // ns of processor time: of this process, of everybody
    struct meter nvdec;    // ns
    bool has_nvdec;
    struct meter upload, kernel, download; // ns of the device
    bool has_device;
};

void load_sample(struct load *, struct engine *, int64_t now_ns);

struct json_t;
struct json_t *status_bound_json(const struct load *, const struct metrics *); // NULL: no memory

#endif
