// The part of the status that names the bottleneck. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_BOTTLENECK_H
#define FRAMED_DAEMON_SERVICE_STATUS_BOTTLENECK_H

#include "daemon/service/metrics.h"

struct device_load {
    struct device_status status;                         // at the sample
    struct rate_counter nvdec, upload, kernel, download; // ns
};

// Sampled together; zeros are a valid start.
struct load {
    struct rate_counter own, all; // ns of processor time: of this process, of all processes
    struct device_load device[DEVICES_MAX]; // in the order of devices_status
    int n_devices;
    struct rate_counter running; // ns with pictures, summed over cameras
    uint64_t running_ns;
    int64_t sampled_ns;
    struct devices_memory memory; // planned for the cameras of that reload, on those devices:
    bool has_memory;
    uint64_t memory_reload;
    unsigned memory_devices; // bits, see devices_bits
    int memory_seen;         // cameras that had shown a picture
};

long long resident_bytes(void); // memory of this process
void load_sample(struct load *, const struct metrics *, int64_t now_ns);

// Returns `more` of struct bottleneck.
int status_more_cameras(const struct load *, const struct metrics *);

struct json_t;
// Returns the devices as a list of objects; NULL: no memory.
struct json_t *status_devices_json(const struct load *);
struct json_t *status_bottleneck_json(const struct load *,
                                      const struct metrics *); // NULL: no memory

#endif
