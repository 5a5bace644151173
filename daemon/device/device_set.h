// Internals of devices.h: device_set.c opens, describes and reopens the devices, leases.c leases
// them to cameras. Private to these.
#ifndef FRAMED_DAEMON_DEVICE_DEVICE_SET_H
#define FRAMED_DAEMON_DEVICE_DEVICE_SET_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/base/machine.h"
#include "daemon/base/retry.h"
#include "daemon/codec/hardware_record.h"
#include "daemon/device/budget.h"
#include "daemon/device/devices.h"

struct device {
    const struct backend_driver *driver;
    struct backend_options options;
    char label[16];          // for the log: "cpu", "cuda", one of several "cuda:0"
    _Atomic size_t reserved; // bytes of its memory
    _Atomic bool failed;     // a GPU, until it is open again; written under the lock
    // Under the lock; `limit` is constant while there are leases:
    size_t memory, limit;        // total bytes (0: unknown), and usable bytes
    uint8_t uuid[16];            // zeros: unknown
    struct backend *backend;     // NULL: not open
    struct decode_device *nvdec; // NULL: not open
    bool has_nvdec;              // NVDEC is open, or was before the device failed
    bool nvdec_wanted;           // requested by cameras after it failed
    bool busy;                   // a thread opens or closes it, without the lock
    int n_leases;
    struct gpu_share taken;        // planned for the cameras with these leases
    struct device_lease *watchers; // leases with device_on_failure
    // For the keeper, of a GPU:
    struct retry backoff;
    int64_t opened_ns, next_try_ns;
    int failed_tries;
};

struct devices {
    const struct config *config;
    struct device device[GPUS_MAX + 1]; // the GPUs, and then the CPU
    int n_gpus;
    _Atomic uint64_t fallbacks;
    struct memory_reserve reserve;
    struct hardware_record verified_decoders;
    pthread_mutex_t lock;
    pthread_cond_t changed; // any change under the lock
    bool closing;
    pthread_t keeper;
    bool has_keeper;
};

static inline struct device *device_cpu(struct devices *devices)
{
    return &devices->device[devices->n_gpus];
}

struct placement_gpu device_placement(const struct device *gpu); // under the lock

// Under the lock, released while it calls the driver.
int device_open_backend(struct devices *, struct device *);

#endif
