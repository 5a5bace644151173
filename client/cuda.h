// Maps the daemon's device memory with the driver's own library, which is loaded on first use.
#ifndef FRAMED_CLIENT_CUDA_H
#define FRAMED_CLIENT_CUDA_H

#include <stdbool.h>
#include <stdint.h>

struct cuda_memory {
    uint64_t address; // a device pointer
    uint64_t bytes;   // set before the import
    int device;       // the driver's device number
    bool is_ipc;      // imported by cuda_import_ipc
    void *library;
};

// Both import memory of the daemon into the primary context of the device with this UUID, and
// retain that context. -ENODEV: no driver, or the device is not visible here; -EIO: the driver
// refused. cuda_import maps the allocation of a file descriptor, for reading; the caller keeps the
// descriptor.
int cuda_import(struct cuda_memory *, int fd, const uint8_t uuid[16]);
// Maps the allocation of a cudaIpcMemHandle_t, for reading and writing: CUDA has no other way.
int cuda_import_ipc(struct cuda_memory *, const uint8_t handle[64], const uint8_t uuid[16]);
void cuda_unmap(struct cuda_memory *);

#endif
