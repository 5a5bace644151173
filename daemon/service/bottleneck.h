// Which stage of a frame's way is the bottleneck now, and how many more cameras this machine can
// take, by what was measured in the last seconds. Pure.
#ifndef FRAMED_DAEMON_SERVICE_BOTTLENECK_H
#define FRAMED_DAEMON_SERVICE_BOTTLENECK_H

#include <stdbool.h>

#include "daemon/device/devices.h"

// Of one device; -1: it has none. Of copies and kernels these are shares of what the device can do.
struct device_shares {
    int number;   // of the GPU; -1: the CPU
    double nvdec; // of the places inside NVDEC that are taken
    double upload, kernel, download;
};

struct bottleneck_facts {
    double processors; // that framed may use, as a number: its affinity and its quota
    double used, busy; // of them: by framed, and by everybody; 0: not known
    struct device_shares device[DEVICES_MAX]; // those that work
    int n_devices;
    int running;              // cameras that show pictures now,
    double running_mean;      // and on average over the time of the shares
    double decode, submit;    // largest share of a camera's thread in decoding and in handing on
    bool waits;               // the camera of that largest `submit` has an output that may wait
    double offered, overflow; // frames/s of all outputs
    // What the budget plans for an average camera and what is left, of all devices together, bytes;
    // a need of 0: not known.
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
    int device; // the number of the GPU whose stage that is; -1: of none
    // How busy that stage is, or how much of its time a thread waits for it: 0 to 1; 0 for network
    // and unknown.
    double share;
    // More cameras like the present ones; -1: unknown, since something with too little load to be
    // extrapolated may end first, or since clients slow the cameras down.
    int more;
    const char *ends_first; // as cameras are added: "cpu", "nvdec", "upload", "kernel",
                            // "download", "memory", "device_memory"; NULL: unknown
};

// The largest share of each kind that any device has.
struct device_shares bottleneck_busiest_shares(const struct bottleneck_facts *);
struct bottleneck bottleneck_judge(const struct bottleneck_facts *);
const char *bottleneck_stage_name(enum bottleneck_stage);

#endif
