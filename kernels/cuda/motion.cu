// Motion on CUDA: the cameras' memory and the launches. Kernel: motion.cuh.
#include <stddef.h>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/motion.cuh"

enum { ALIGNMENT = 256 };

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// The offset of the blocks' planes in a camera's memory, after its state, and its total size.
struct motion_room {
    size_t planes, bytes;
};

static struct motion_room room_of(const struct motion *m)
{
    static const int blocks[] = {1, MOTION_BLOCKS_MANY, MOTION_BLOCKS_FEW};
    size_t planes = 0;
    for (int i = 0; i < 3; i++) {
        const size_t bytes = (size_t)blocks[i] * motion_planes_bytes(m, blocks[i]);
        planes = bytes > planes ? bytes : planes;
    }
    const size_t at = round_up(offsetof(struct motion_camera, state) + motion_state_bytes(m));
    return {at, at + round_up(planes)};
}

size_t motion_cuda_bytes(const struct motion *m)
{
    return room_of(m).bytes;
}

// The device's limits for a block. If it has fewer threads than a block that is alone, there are
// clusters.
struct motion_device {
    int threads, shared_bytes;
};

static cudaError_t device_look(struct motion_device *ret)
{
    struct cudaFuncAttributes attributes;
    int device;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&ret->shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                       device);
    if (error == cudaSuccess)
        error = cudaFuncGetAttributes(&attributes, motion_kernel<true>);
    if (error == cudaSuccess)
        ret->threads = attributes.maxThreadsPerBlock;
    return error;
}

// The kernels use only the shared memory that a launch requests.
cudaError_t motion_cuda_load(void)
{
    struct cudaFuncAttributes attributes;
    struct motion_device device;
    cudaError_t error = device_look(&device);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(
            motion_kernel<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, device.shared_bytes);
    if (error == cudaSuccess)
        error = cudaFuncGetAttributes(&attributes, motion_kernel<false>);
    return error;
}

static struct motion_cuda_blocks blocks_of(const struct motion *m,
                                           const struct motion_device *device, int n)
{
    const int blocks = device->threads < MOTION_THREADS_ALONE ? n : 1;
    const size_t wanted = sizeof(struct motion_block) + motion_planes_bytes(m, blocks);
    return {blocks, wanted <= (size_t)device->shared_bytes ? wanted : 0};
}

cudaError_t motion_cuda_init(struct motion_cuda *ret, const struct motion *m, void *memory,
                             const uint32_t *sums, struct motion_changes *changes,
                             cudaStream_t stream)
{
    uint8_t *base = (uint8_t *)memory;
    struct motion_camera *camera = (struct motion_camera *)memory;
    const struct motion_places places = {sums, changes, (uint16_t *)(base + room_of(m).planes)};
    struct motion_device device = {};
    cudaError_t error = device_look(&device);
    if (error == cudaSuccess)
        *ret = {memory, device.threads, blocks_of(m, &device, MOTION_BLOCKS_FEW),
                blocks_of(m, &device, MOTION_BLOCKS_MANY)};
    // Pageable memory is read before these return.
    if (error == cudaSuccess)
        error =
            cudaMemcpyAsync(&camera->at, &places, sizeof places, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(&camera->motion, m, sizeof *m, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(&camera->state, 0, motion_state_bytes(m), stream);
    return error;
}

static cudaError_t batch_launch(const struct motion_batch *batch, int cameras, int threads,
                                struct motion_cuda_blocks blocks, cudaStream_t stream)
{
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)blocks.n;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(cameras * blocks.n);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes =
        blocks.shared_bytes ? blocks.shared_bytes : sizeof(struct motion_block);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = blocks.n > 1;
    return cudaLaunchKernelEx(
        &config, blocks.shared_bytes ? motion_kernel<true> : motion_kernel<false>, *batch);
}

cudaError_t motion_cuda_launch(const struct motion_cuda *const cameras[], int n,
                               cudaStream_t stream)
{
    struct motion_batch batch;
    cudaError_t error = cudaSuccess;
    for (int at = 0; at < n && error == cudaSuccess; at += MOTION_BATCH) {
        const int count = n - at < MOTION_BATCH ? n - at : MOTION_BATCH;
        struct motion_cuda_blocks blocks = {};
        bool fit = true;
        for (int i = 0; i < count; i++) {
            const struct motion_cuda *camera = cameras[at + i];
            const struct motion_cuda_blocks *own = n <= MOTION_FEW ? &camera->few : &camera->many;
            batch.camera[i] = (struct motion_camera *)camera->memory;
            fit &= own->shared_bytes > 0;
            if (own->shared_bytes >= blocks.shared_bytes)
                blocks = *own;
        }
        blocks.shared_bytes = fit ? blocks.shared_bytes : 0;
        error = batch_launch(&batch, count, cameras[at]->threads, blocks, stream);
    }
    return error;
}
