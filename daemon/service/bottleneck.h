// Finds the stage of a frame's way that is the bottleneck now, and how many more cameras this
// machine can take, from measurements of the last seconds. Pure.
#ifndef FRAMED_DAEMON_SERVICE_BOTTLENECK_H
#define FRAMED_DAEMON_SERVICE_BOTTLENECK_H

#include <stdbool.h>

#include "daemon/device/devices.h"

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

#endif
