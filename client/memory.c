#include "client/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int map(struct framed_memory **ret, int fd, uint64_t bytes)
{
    struct framed_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return -ENOMEM;
    const int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *host = mmap(NULL, bytes, fd < 0 ? PROT_READ | PROT_WRITE : PROT_READ, kind, fd, 0);
    if (host == MAP_FAILED) {
        const int rc = -errno;
        free(memory);
        return rc;
    }
    atomic_init(&memory->holders, 1);
    memory->host = host;
    memory->host_bytes = bytes;
    *ret = memory;
    return 0;
}

int memory_allocate(struct framed_memory **ret, uint64_t bytes)
{
    return map(ret, -1, bytes);
}

int memory_map(struct framed_memory **ret, int fd, uint64_t bytes, bool sealed)
{
    struct stat stat;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (sealed && !(seals & F_SEAL_SHRINK)) || fstat(fd, &stat) != 0 || bytes == 0 ||
        stat.st_size < 0 || (uint64_t)stat.st_size < bytes)
        return -EPROTO;
    return map(ret, fd, bytes);
}

void memory_hold(struct framed_memory *memory)
{
    atomic_fetch_add_explicit(&memory->holders, 1, memory_order_relaxed);
}

void memory_drop(struct framed_memory *memory)
{
    if (!memory || atomic_fetch_sub_explicit(&memory->holders, 1, memory_order_acq_rel) > 1)
        return;
    if (memory->device.address)
        cuda_unmap(&memory->device);
    munmap(memory->host, memory->host_bytes);
    free(memory);
}
