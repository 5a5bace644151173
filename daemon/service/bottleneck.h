// Which leg of the way of a frame bounds the box now, and how many cameras more it would bear: by
// what was measured over the last seconds. Pure.
#ifndef FRAMED_DAEMON_SERVICE_BOTTLENECK_H
#define FRAMED_DAEMON_SERVICE_BOTTLENECK_H

#include <stdbool.h>

struct bottleneck_facts {
    double processors; // that framed may use, as a number: its affinity and its quota
    double used, busy; // of them: by framed, and by everybody; 0: not known
    double nvdec;      // share of the places inside NVDEC that are taken; -1: there is none
    // Shares of what the backend's device can do that are taken; -1: it has none, as the cpu's.
    double upload, kernel, download;
    int running;              // cameras that show pictures now,
    double running_mean;      // and on average over the time of the shares
    double decode, submit;    // largest share of a camera's thread in decoding and in handing on
    bool waits;               // the camera of that largest `submit` has an output that may wait
    double offered, overflow; // frames/s of all outputs
    // What the budget plans for an average camera and what is left, bytes; a need of 0: not known.
    double memory_need, memory_left, device_need, device_left;
};

enum bottleneck_stage {
    BOTTLENECK_UNKNOWN,  // no camera shows pictures
    BOTTLENECK_NETWORK,  // nothing here: the cameras give no more
    BOTTLENECK_CPU,      // processors are short
    BOTTLENECK_DECODER,  // NVDEC, or a thread that decodes all the time
    BOTTLENECK_UPLOAD,   // copies to the GPU
    BOTTLENECK_KERNEL,   // the GPU's kernels, or the cpu backend's workers
    BOTTLENECK_DOWNLOAD, // copies from the GPU
    BOTTLENECK_CLIENT,   // who reads is slower than what comes
};

struct bottleneck {
    enum bottleneck_stage leg;
    // How far that leg is at its end, or how much of its time a thread waits for it: 0 to 1; 0 of
    // network and unknown.
    double share;
    // Cameras like the present ones; -1: unknown, where what is loaded too little to be
    // extrapolated may be what ends first, or where clients hold the cameras back.
    int more;
    const char *end; // what ends first as they come: "cpu", "nvdec", "upload", "kernel",
                     // "download", "memory", "device_memory"; NULL: unknown
};

struct bottleneck bottleneck_judge(const struct bottleneck_facts *);
const char *bottleneck_stage_name(enum bottleneck_stage);

#endif
