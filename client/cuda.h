// The daemon's device memory, mapped here by the driver's own library, which is loaded when it is
// first needed.
#ifndef FRAMED_CLIENT_CUDA_H
#define FRAMED_CLIENT_CUDA_H

#include <stdbool.h>
#include <stdint.h>

struct cuda_memory {
    uint64_t address; // a device pointer
    uint64_t bytes;   // set before it is imported
    int device;       // the driver's number of it
    bool is_ipc;      // imported by cuda_import_ipc
    void *library;
};

// Each imports memory of the daemon's into the primary context of the device with this UUID, which
// it retains. -ENODEV: no driver, or the device is not visible here; -EIO: the driver refused.
// The allocation behind a file descriptor, which stays the caller's, to read.
int cuda_import(struct cuda_memory *, int fd, const uint8_t uuid[16]);
// The allocation that a cudaIpcMemHandle_t names, to read and write: CUDA maps it in no other way.
int cuda_import_ipc(struct cuda_memory *, const uint8_t handle[64], const uint8_t uuid[16]);
void cuda_unmap(struct cuda_memory *);

#endif
