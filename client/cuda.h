// The daemon's device memory, mapped here by the driver's own library, which is loaded when it is
// first needed.
#ifndef FRAMED_CLIENT_CUDA_H
#define FRAMED_CLIENT_CUDA_H

#include <stdint.h>

struct cuda_memory {
    uint64_t address; // a device pointer
    uint64_t bytes;
    int device; // the driver's number of it
    void *library;
};

// Imports the allocation behind a file descriptor, which stays the caller's, into the primary
// context of the device with this UUID, which it retains. -ENODEV: no driver, or the device is not
// visible here; -EIO: the driver refused.
int cuda_import(struct cuda_memory *, int fd, uint64_t bytes, const uint8_t uuid[16]);
void cuda_unmap(struct cuda_memory *);

#endif
