// CUDA's driver for tests that are built without CUDA.
#ifndef FRAMED_TESTS_CLIENT_CUDA_DRIVER_H
#define FRAMED_TESTS_CLIENT_CUDA_DRIVER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// CUDA's driver, as far as a daemon needs it: the structs have the layout of its cuda.h.
struct driver_properties {
    int type, handle_types, location_type, location_id;
    void *metadata;
    unsigned char flags[8];
};

struct driver_access {
    int location_type, location_id, flags;
};

struct driver {
    int (*init)(unsigned);
    int (*device_uuid)(uint8_t[16], int);
    int (*context_retain)(void **, int);
    int (*context_set)(void *);
    int (*granularity)(size_t *, const struct driver_properties *, int);
    int (*create)(uint64_t *, size_t, const struct driver_properties *, unsigned long long);
    int (*export)(int *, uint64_t, int, unsigned long long);
    int (*reserve)(uint64_t *, size_t, size_t, uint64_t, unsigned long long);
    int (*map)(uint64_t, size_t, size_t, uint64_t, unsigned long long);
    int (*set_access)(uint64_t, size_t, const struct driver_access *, size_t);
    int (*fill)(uint64_t, unsigned char, size_t);
    int (*allocate)(uint64_t *, size_t);
    int (*ipc_handle)(uint8_t[64], uint64_t);
    int (*copy_up)(uint64_t, const void *, size_t);
    int (*copy_down)(void *, uint64_t, size_t);
};

// Returns false without a GPU. Otherwise makes device 0's context current in this thread.
static inline bool driver_load(struct driver *driver)
{
    const struct {
        void *to;
        const char *name;
    } functions[] = {
        {&driver->init, "cuInit"},
        {&driver->device_uuid, "cuDeviceGetUuid"},
        {&driver->context_retain, "cuDevicePrimaryCtxRetain"},
        {&driver->context_set, "cuCtxSetCurrent"},
        {&driver->granularity, "cuMemGetAllocationGranularity"},
        {&driver->create, "cuMemCreate"},
        {&driver->export, "cuMemExportToShareableHandle"},
        {&driver->reserve, "cuMemAddressReserve"},
        {&driver->map, "cuMemMap"},
        {&driver->set_access, "cuMemSetAccess"},
        {&driver->fill, "cuMemsetD8_v2"},
        {&driver->allocate, "cuMemAlloc_v2"},
        {&driver->ipc_handle, "cuIpcGetMemHandle"},
        {&driver->copy_up, "cuMemcpyHtoD_v2"},
        {&driver->copy_down, "cuMemcpyDtoH_v2"},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *function, *context;
    for (size_t i = 0; library && i < sizeof functions / sizeof functions[0]; i++) {
        function = dlsym(library, functions[i].name);
        memcpy(functions[i].to, &function, sizeof function);
    }
    return library && driver->init(0) == 0 && driver->context_retain(&context, 0) == 0 &&
           driver->context_set(context) == 0;
}

#endif
