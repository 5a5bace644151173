// Memory of payloads: the pages that the daemon shares, its device memory, or a buffer of ours.
// Every user that may still read it holds a reference.
#ifndef FRAMED_CLIENT_MEMORY_H
#define FRAMED_CLIENT_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cuda.h"

struct framed_memory {
    atomic_uint holders;
    uint8_t *host; // page aligned; the daemon's pages are read-only
    uint64_t host_bytes;
    struct cuda_memory device; // device.address is 0 if there is none
};

// Both return a memory with one reference. Negative errno.
int memory_allocate(struct framed_memory **ret, uint64_t bytes);
// Maps the daemon's memfd; the caller keeps `fd`. -EPROTO: it is smaller than `bytes`, or with
// `sealed` could shrink below that, which would kill a reader.
int memory_map(struct framed_memory **ret, int fd, uint64_t bytes, bool sealed);

void memory_hold(struct framed_memory *);
void memory_drop(struct framed_memory *); // NULL does nothing

#endif
