// Memory shared with others: host memory that is page-locked in place, and device memory that other
// processes can map. Only the driver API offers the latter; its functions are looked up by name, so
// that the program starts without a driver.
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/cuda.h"

// --- page-locked ranges

struct pinned_range {
    struct pinned_range *next;
    const struct backend *backend;
    void *memory;
};

// CUDA page-locks memory for the whole process, so all its backends share the list of pinned
// ranges: the first to pin a range locks it, and the last to unpin it unlocks it.
static struct {
    pthread_mutex_t lock;
    struct pinned_range *list;
} pinned = {PTHREAD_MUTEX_INITIALIZER, NULL};

// Returns true if another backend has pinned the memory. Under the lock.
static bool others_pin(const struct backend *backend, const void *memory)
{
    const struct pinned_range *range = pinned.list;
    while (range && (range->memory != memory || range->backend == backend))
        range = range->next;
    return range != NULL;
}

// Registers even locked pages: a reset of the device that locked them may have unlocked them.
static int lock_pages(const struct backend *backend, void *memory, size_t bytes)
{
    const cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
    const int rc = cuda_errno(error);
    if (error == cudaErrorHostMemoryAlreadyRegistered && others_pin(backend, memory))
        return 0;
    return rc == 0 || rc == -ENOMEM ? rc : -EIO;
}

int cuda_pin(struct backend *backend, void *memory, size_t bytes)
{
    struct pinned_range *range = (struct pinned_range *)malloc(sizeof *range);
    if (!range)
        return -ENOMEM;
    int error = cuda_errno(cudaSetDevice(backend->device)) ? -EIO : 0;
    pthread_mutex_lock(&pinned.lock);
    if (!error)
        error = lock_pages(backend, memory, bytes);
    if (!error) {
        range->backend = backend;
        range->memory = memory;
        range->next = pinned.list;
        pinned.list = range;
    }
    pthread_mutex_unlock(&pinned.lock);
    if (error)
        free(range);
    return error;
}

// Unpins the backend's range that starts at `memory`, or any if that is NULL. Returns false if
// there is none.
static bool unpin(const struct backend *backend, void *memory)
{
    pthread_mutex_lock(&pinned.lock);
    struct pinned_range **at = &pinned.list;
    while (*at && ((*at)->backend != backend || (memory && (*at)->memory != memory)))
        at = &(*at)->next;
    struct pinned_range *range = *at;
    if (range) {
        *at = range->next;
        if (!others_pin(backend, range->memory))
            cuda_errno(cudaHostUnregister(range->memory));
    }
    pthread_mutex_unlock(&pinned.lock);
    free(range);
    return range != NULL;
}

void cuda_unpin(struct backend *backend, void *memory)
{
    if (!memory)
        return;
    cudaSetDevice(backend->device);
    unpin(backend, memory);
}

void cuda_unpin_all(struct backend *backend)
{
    while (unpin(backend, NULL))
        ;
}

// --- device memory for other processes

struct vmm {
    decltype(&cuDeviceGetAttribute) attribute;
    decltype(&cuMemGetAllocationGranularity) granularity;
    decltype(&cuMemCreate) create;
    decltype(&cuMemRelease) release;
    decltype(&cuMemExportToShareableHandle) share;
    decltype(&cuMemAddressReserve) reserve;
    decltype(&cuMemAddressFree) free;
    decltype(&cuMemMap) map;
    decltype(&cuMemUnmap) unmap;
    decltype(&cuMemSetAccess) access;
};

template <typename F> static bool find(F *function, const char *name)
{
    enum cudaDriverEntryPointQueryResult found;
    void *address = NULL;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found);
#else
    cudaError_t error = cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &found);
#endif
    *function = (F)address;
    return !cuda_errno(error) && found == cudaDriverEntryPointSuccess && address;
}

static bool vmm_find(struct vmm *vmm)
{
    return find(&vmm->attribute, "cuDeviceGetAttribute") &&
           find(&vmm->granularity, "cuMemGetAllocationGranularity") &&
           find(&vmm->create, "cuMemCreate") && find(&vmm->release, "cuMemRelease") &&
           find(&vmm->share, "cuMemExportToShareableHandle") &&
           find(&vmm->reserve, "cuMemAddressReserve") && find(&vmm->free, "cuMemAddressFree") &&
           find(&vmm->map, "cuMemMap") && find(&vmm->unmap, "cuMemUnmap") &&
           find(&vmm->access, "cuMemSetAccess");
}

static bool can_export(const struct vmm *vmm, int device)
{
    int vmm_supported = 0, fd_supported = 0;
    return vmm->attribute(&vmm_supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                          device) == CUDA_SUCCESS &&
           vmm->attribute(&fd_supported,
                          CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                          device) == CUDA_SUCCESS &&
           vmm_supported && fd_supported;
}

static int driver_errno(CUresult result)
{
    switch (result) {
    case CUDA_SUCCESS:
        return 0;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return -ENOMEM;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_PERMITTED:
        return -ENOTSUP;
    default:
        return -EIO;
    }
}

static CUmemAllocationProp properties_of(int device)
{
    CUmemAllocationProp properties;
    memset(&properties, 0, sizeof properties);
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return properties;
}

// Maps the memory of `handle` and makes the descriptor. On error *ret holds the parts made so far.
static CUresult map_and_share(const struct vmm *vmm, struct device_export *ret,
                              CUmemGenericAllocationHandle handle,
                              const CUmemAllocationProp *properties)
{
    const CUmemAccessDesc access = {properties->location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address = 0;
    CUresult result = vmm->reserve(&address, ret->bytes, 0, 0, 0);
    if (result != CUDA_SUCCESS)
        return result;
    ret->address = (void *)address;
    result = vmm->map(address, ret->bytes, 0, handle, 0);
    if (result != CUDA_SUCCESS) {
        vmm->free(address, ret->bytes);
        ret->address = NULL;
        return result;
    }
    result = vmm->access(address, ret->bytes, &access, 1);
    if (result == CUDA_SUCCESS)
        result = vmm->share(&ret->fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    return result;
}

// The mapping and the descriptor keep the memory alive; the handle is only needed here.
static int export_memory(const struct vmm *vmm, struct device_export *ret, int device, size_t bytes)
{
    const CUmemAllocationProp properties = properties_of(device);
    CUmemGenericAllocationHandle handle;
    size_t unit = 0;
    CUresult result = vmm->granularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (result != CUDA_SUCCESS)
        return driver_errno(result);
    ret->bytes = (bytes + unit - 1) / unit * unit;
    result = vmm->create(&handle, ret->bytes, &properties, 0);
    if (result != CUDA_SUCCESS)
        return driver_errno(result);
    result = map_and_share(vmm, ret, handle, &properties);
    vmm->release(handle);
    return driver_errno(result);
}

// Smaller pieces share an allocation, and the handle would open all of it.
static int open_ipc(struct device_export *ret, size_t bytes)
{
    const size_t unit = 2 << 20;
    cudaIpcMemHandle_t handle;
    static_assert(sizeof handle == sizeof ret->handle, "of any process");
    ret->bytes = (bytes + unit - 1) / unit * unit;
    cudaError_t error = cudaMalloc(&ret->address, ret->bytes);
    if (error == cudaSuccess)
        error = cudaIpcGetMemHandle(&handle, ret->address);
    if (error == cudaSuccess)
        memcpy(ret->handle, &handle, sizeof handle);
    const int rc = cuda_errno(error);
    return error == cudaErrorNotSupported ? -ENOTSUP : rc;
}

static int open_descriptor(struct backend *backend, struct device_export *ret, size_t bytes)
{
    struct vmm vmm;
    if (!vmm_find(&vmm) || !can_export(&vmm, backend->device))
        return -ENOTSUP;
    return export_memory(&vmm, ret, backend->device, bytes);
}

static cudaError_t clear(struct backend *backend, const struct device_export *memory)
{
    CUDA_TRY(cudaMemsetAsync(memory->address, 0, memory->bytes, backend->aside));
    return cudaStreamSynchronize(backend->aside);
}

int cuda_export_open(struct backend *backend, struct device_export *ret, enum export_kind kind,
                     size_t bytes)
{
    memset(ret, 0, sizeof *ret);
    ret->kind = kind;
    ret->fd = -1;
    int error = cuda_errno(cudaSetDevice(backend->device));
    if (error)
        return -EIO;
    error = kind == EXPORT_IPC ? open_ipc(ret, bytes) : open_descriptor(backend, ret, bytes);
    if (!error)
        error = cuda_errno(clear(backend, ret));
    if (error) {
        cuda_export_close(backend, ret);
        return error;
    }
    if (ret->fd >= 0)
        fcntl(ret->fd, F_SETFD, FD_CLOEXEC);
    memcpy(ret->uuid, backend->uuid, sizeof ret->uuid);
    return 0;
}

int cuda_export_write(struct backend *backend, void *to, const void *from, size_t bytes)
{
    cudaError_t error = cudaSetDevice(backend->device);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cudaStreamPerThread);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(cudaStreamPerThread);
    return cuda_errno(error) ? -EIO : 0;
}

int cuda_picture_copy(struct backend *backend, const struct image *to, const struct image *from)
{
    cudaError_t error = cudaSetDevice(backend->device);
    for (int p = 0; p < pixel_format_planes(from->format) && error == cudaSuccess; p++)
        error =
            cudaMemcpy2DAsync(to->plane[p].data, to->plane[p].stride, from->plane[p].data,
                              from->plane[p].stride, plane_row_bytes(from->format, p, from->width),
                              plane_rows(from->format, p, from->height), cudaMemcpyDeviceToDevice,
                              cudaStreamPerThread);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(cudaStreamPerThread);
    return cuda_errno(error) ? -EIO : 0;
}

void cuda_export_close(struct backend *backend, struct device_export *memory)
{
    struct vmm vmm;
    cudaSetDevice(backend->device);
    if (memory->kind == EXPORT_IPC) {
        cudaFree(memory->address);
    } else if (memory->address && vmm_find(&vmm)) {
        vmm.unmap((CUdeviceptr)memory->address, memory->bytes);
        vmm.free((CUdeviceptr)memory->address, memory->bytes);
    }
    if (memory->fd >= 0)
        close(memory->fd);
    memset(memory, 0, sizeof *memory);
    memory->fd = -1;
}
