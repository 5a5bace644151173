// Memory of payloads, and the daemon's device memory: CUDA's driver maps it, whose library is
// loaded on first use.
#include "client/reader.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

// --- device memory

// Looks up the driver's functions by name, as few machines with the driver have its cuda.h. They
// return 0 on success. Handles and device pointers are 64 bits wide.
enum {
    HANDLE_POSIX_FILE_DESCRIPTOR = 1,
    LOCATION_DEVICE = 1,
    ACCESS_READ = 1,
    ACCESS_READ_WRITE = 3,
    IPC_LAZY_PEER_ACCESS = 1,
};

struct ipc_handle {
    uint8_t bytes[64];
};

struct access {
    int location_type, location_id, flags;
};

struct driver {
    int (*init)(unsigned);
    int (*device_count)(int *);
    int (*device_get)(int *, int);
    int (*device_uuid)(uint8_t[16], int);
    int (*context_retain)(void **, int);
    int (*context_release)(int);
    int (*context_push)(void *);
    int (*context_pop)(void **);
    int (*import)(uint64_t *, void *, int);
    int (*reserve)(uint64_t *, size_t, size_t, uint64_t, uint64_t);
    int (*map)(uint64_t, size_t, size_t, uint64_t, uint64_t);
    int (*release)(uint64_t);
    int (*set_access)(uint64_t, size_t, const struct access *, size_t);
    int (*unmap)(uint64_t, size_t);
    int (*free)(uint64_t, size_t);
    int (*ipc_open)(uint64_t *, struct ipc_handle, unsigned);
    int (*ipc_close)(uint64_t);
};

// Returns -ENODEV if the library lacks a function.
static int find_functions(struct driver *driver, void *library)
{
    const struct {
        void *to;
        const char *name;
    } functions[] = {
        {&driver->init, "cuInit"},
        {&driver->device_count, "cuDeviceGetCount"},
        {&driver->device_get, "cuDeviceGet"},
        {&driver->device_uuid, "cuDeviceGetUuid"},
        {&driver->context_retain, "cuDevicePrimaryCtxRetain"},
        {&driver->context_release, "cuDevicePrimaryCtxRelease_v2"},
        {&driver->context_push, "cuCtxPushCurrent_v2"},
        {&driver->context_pop, "cuCtxPopCurrent_v2"},
        {&driver->import, "cuMemImportFromShareableHandle"},
        {&driver->reserve, "cuMemAddressReserve"},
        {&driver->map, "cuMemMap"},
        {&driver->release, "cuMemRelease"},
        {&driver->set_access, "cuMemSetAccess"},
        {&driver->unmap, "cuMemUnmap"},
        {&driver->free, "cuMemAddressFree"},
        {&driver->ipc_open, "cuIpcOpenMemHandle_v2"},
        {&driver->ipc_close, "cuIpcCloseMemHandle"},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function)
            return -ENODEV;
        memcpy(functions[i].to, &function, sizeof function);
    }
    return 0;
}

static int find_device(const struct driver *driver, const uint8_t uuid[16], int *ret)
{
    int n = 0;
    uint8_t found[16];
    if (driver->init(0) != 0 || driver->device_count(&n) != 0)
        return -ENODEV;
    for (int i = 0; i < n; i++)
        if (driver->device_get(ret, i) == 0 && driver->device_uuid(found, *ret) == 0 &&
            memcmp(found, uuid, sizeof found) == 0)
            return 0;
    return -ENODEV;
}

// Maps for reading, or for writing too if the driver has no read-only mappings.
static int allow_reading(const struct driver *driver, const struct cuda_memory *memory)
{
    struct access access = {LOCATION_DEVICE, memory->device, ACCESS_READ};
    if (driver->set_access(memory->address, memory->bytes, &access, 1) == 0)
        return 0;
    access.flags = ACCESS_READ_WRITE;
    return driver->set_access(memory->address, memory->bytes, &access, 1) == 0 ? 0 : -EIO;
}

// Needs the device's context to be current, as does open_handle.
static int map_descriptor(const struct driver *driver, struct cuda_memory *memory, int fd)
{
    uint64_t handle;
    if (driver->import(&handle, (void *)(intptr_t)fd, HANDLE_POSIX_FILE_DESCRIPTOR) != 0)
        return -EIO;
    int rc = driver->reserve(&memory->address, memory->bytes, 0, 0, 0) == 0 ? 0 : -EIO;
    if (rc < 0) {
        memory->address = 0;
        goto release;
    }
    rc = driver->map(memory->address, memory->bytes, 0, handle, 0) == 0 ? 0 : -EIO;
    if (rc < 0)
        goto free;
    rc = allow_reading(driver, memory);
    if (rc == 0)
        goto release; // the mapping keeps the allocation alive
    driver->unmap(memory->address, memory->bytes);
free:
    driver->free(memory->address, memory->bytes);
    memory->address = 0;
release:
    driver->release(handle);
    return rc;
}

static int open_handle(const struct driver *driver, struct cuda_memory *memory,
                       const uint8_t handle[64])
{
    struct ipc_handle ipc;
    memcpy(ipc.bytes, handle, sizeof ipc.bytes);
    if (driver->ipc_open(&memory->address, ipc, IPC_LAZY_PEER_ACCESS) == 0)
        return 0;
    memory->address = 0;
    return -EIO;
}

// Imports the handle, or the descriptor if `handle` is NULL.
static int import_memory(struct cuda_memory *memory, int fd, const uint8_t *handle,
                         const uint8_t uuid[16])
{
    struct driver driver;
    void *context, *before;
    memory->address = 0;
    memory->is_ipc = handle != NULL;
    memory->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!memory->library)
        return -ENODEV;
    int rc = find_functions(&driver, memory->library);
    if (rc == 0)
        rc = find_device(&driver, uuid, &memory->device);
    if (rc < 0)
        goto close;
    rc = -EIO;
    if (driver.context_retain(&context, memory->device) != 0)
        goto close;
    if (driver.context_push(context) == 0) {
        rc = handle ? open_handle(&driver, memory, handle) : map_descriptor(&driver, memory, fd);
        driver.context_pop(&before);
    }
    if (rc == 0)
        return 0;
    driver.context_release(memory->device);
close:
    dlclose(memory->library);
    return rc;
}

int cuda_import(struct cuda_memory *memory, int fd, const uint8_t uuid[16])
{
    return import_memory(memory, fd, NULL, uuid);
}

int cuda_import_ipc(struct cuda_memory *memory, const uint8_t handle[64], const uint8_t uuid[16])
{
    return import_memory(memory, -1, handle, uuid);
}

// Closes the handle in the context that opened it.
static void close_handle(const struct driver *driver, const struct cuda_memory *memory)
{
    void *context, *before;
    if (driver->context_retain(&context, memory->device) != 0)
        return;
    if (driver->context_push(context) == 0) {
        driver->ipc_close(memory->address);
        driver->context_pop(&before);
    }
    driver->context_release(memory->device);
}

static void cuda_unmap(struct cuda_memory *memory)
{
    struct driver driver;
    find_functions(&driver, memory->library); // cannot fail, as it succeeded at the import
    if (memory->is_ipc) {
        close_handle(&driver, memory);
    } else {
        driver.unmap(memory->address, memory->bytes);
        driver.free(memory->address, memory->bytes);
    }
    driver.context_release(memory->device);
    dlclose(memory->library);
    memory->address = 0;
}

// --- memory of payloads

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
