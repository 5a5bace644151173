// The part of the status that names the bottleneck. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_BOTTLENECK_H
#define FRAMED_DAEMON_SERVICE_STATUS_BOTTLENECK_H

#include "daemon/service/metrics.h"

// Sampled together; zeroed it is ready.
struct load {
    struct rate_counter own, all; // ns of processor time: of this process, of everybody
    struct rate_counter nvdec;    // ns
    bool has_nvdec;
    struct rate_counter upload, kernel, download; // ns of the device
    bool has_device;
    struct rate_counter running; // ns of cameras that show pictures, added up
    uint64_t running_ns;
    int64_t sampled_ns;
    struct devices_memory memory; // planned, for what was there at that reload and on that device:
    bool has_memory, memory_nvdec;
    uint64_t memory_reload;
    const char *memory_backend;
    int memory_seen; // cameras that had shown a picture
};

long long resident_bytes(void); // memory of this process
void load_sample(struct load *, const struct metrics *, int64_t now_ns);

struct json_t;
struct json_t *status_bottleneck_json(const struct load *,
                                      const struct metrics *); // NULL: no memory

#endif
