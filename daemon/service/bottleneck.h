// Finds the stage of a frame's way that is the bottleneck now, and how many more cameras this
// machine can take, from measurements of the last seconds.
#ifndef FRAMED_DAEMON_SERVICE_BOTTLENECK_H
#define FRAMED_DAEMON_SERVICE_BOTTLENECK_H

#include <stdbool.h>

#include "daemon/service/metrics.h"

// --- from shares to the bottleneck; pure

// Shares of one device; -1: it has none. Copies and kernels: shares of the device's capacity.
struct device_shares {
    int number;   // of the GPU; -1: the CPU
    double nvdec; // taken places inside NVDEC
    double upload, kernel, download;
};

struct bottleneck_facts {
    double processors; // number that framed may use, by its affinity and quota
    double used, busy; // of them: by framed, and by everybody; 0: unknown
    struct device_shares device[DEVICES_MAX]; // the working ones
    int n_devices;
    int running;              // cameras with pictures now,
    double running_mean;      // and on average over the time of the shares
    double decode, submit;    // largest share of a camera's thread in decoding and in submitting
    bool waits;               // the camera with that largest `submit` has an output that may wait
    double offered, overflow; // frames/s of all outputs
    // Bytes of all devices together: planned for an average camera by the budget (0: unknown), and
    // the rest.
    double memory_need, memory_left, device_need, device_left;
};

enum bottleneck_stage {
    BOTTLENECK_UNKNOWN,  // no camera shows pictures
    BOTTLENECK_NETWORK,  // not limited: the cameras deliver no more
    BOTTLENECK_CPU,      // processors are short
    BOTTLENECK_DECODER,  // NVDEC, or a thread that decodes all the time
    BOTTLENECK_UPLOAD,   // copies to the GPU
    BOTTLENECK_KERNEL,   // the GPU's kernels, or the cpu backend's workers
    BOTTLENECK_DOWNLOAD, // copies from the GPU
    BOTTLENECK_CLIENT,   // clients read more slowly than frames come
};

struct bottleneck {
    enum bottleneck_stage stage;
    int device; // number of the GPU with that stage; -1: none
    // Load of that stage, or the share of its time that a thread waits for it: 0 to 1; 0 for
    // network and unknown.
    double share;
    // Further cameras like the present ones; -1: unknown, since a resource with too little load to
    // be extrapolated may run out first, or since clients slow the cameras down.
    int more;
    const char *ends_first; // runs out first as cameras are added: "cpu", "nvdec", "upload",
                            // "kernel", "download", "memory", "device_memory"; NULL: unknown
};

// Returns the largest share of each kind over all devices.
struct device_shares bottleneck_busiest_shares(const struct bottleneck_facts *);
struct bottleneck bottleneck_judge(const struct bottleneck_facts *);
const char *bottleneck_stage_name(enum bottleneck_stage);

// --- the load: measurements of this machine and of its cameras' threads. Loop thread.

enum { LOAD_SAMPLE_MS = 1000 }; // between samples

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

// Returns the recent share of the camera's thread in a stage, 0 to 1, with an unfinished submit.
double load_camera_share(const struct camera *, enum stage, int64_t now_ns);
// Returns `more` of struct bottleneck.
int load_more_cameras(const struct load *, const struct metrics *);

struct json_t;
// Return the devices as a list of objects, and the bottleneck; NULL: no memory.
struct json_t *load_devices_json(const struct load *);
struct json_t *load_bottleneck_json(const struct load *, const struct metrics *);

#endif
