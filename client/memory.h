// Where payloads lie: the pages that the daemon shares, its device memory, or a buffer of ours.
// Everyone who may still read it holds it.
#ifndef FRAMED_CLIENT_MEMORY_H
#define FRAMED_CLIENT_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cuda.h"

struct framed_memory {
    atomic_uint holders;
    uint8_t *host; // page aligned; what the daemon shares is read-only
    uint64_t host_bytes;
    struct cuda_memory device; // device.address is 0: there is none
};

// Each gives a memory with one holder. Negative errno.
int memory_allocate(struct framed_memory **ret, uint64_t bytes);
// Maps the daemon's memfd, which stays the caller's. -EPROTO: it is smaller than `bytes`, or with
// `sealed` could become so, which would kill who reads it.
int memory_map(struct framed_memory **ret, int fd, uint64_t bytes, bool sealed);

void memory_hold(struct framed_memory *);
void memory_drop(struct framed_memory *); // NULL does nothing

#endif
