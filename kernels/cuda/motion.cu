// Motion on CUDA: the cameras' memory and the launches. The kernel: motion.cuh.
#include "kernels/cuda/motion.cuh"
#include "kernels/cuda/motion_cuda.h"

enum { ALIGNMENT = 256 };

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// Where the parts of a camera's memory lie.
struct motion_room {
    size_t motion, state, planes, bytes;
};

static struct motion_room room_of(const struct motion *m)
{
    struct motion_room room;
    room.motion = round_up(sizeof(struct motion_camera));
    room.state = room.motion + round_up(sizeof *m);
    room.planes = room.state + round_up(motion_state_bytes(m));
    room.bytes = room.planes + round_up(motion_planes_bytes(m));
    return room;
}

size_t motion_cuda_bytes(const struct motion *m)
{
    return room_of(m).bytes;
}

// The most memory that the device gives a block; the kernel has none but what a launch asks for.
static cudaError_t shared_most(int *ret_bytes)
{
    int device;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(ret_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    return error;
}

cudaError_t motion_cuda_load(void)
{
    struct cudaFuncAttributes attributes;
    int bytes = 0;
    cudaError_t error = shared_most(&bytes);
    if (error == cudaSuccess)
        error = cudaFuncGetAttributes(&attributes, motion_kernel);
    if (error == cudaSuccess)
        error =
            cudaFuncSetAttribute(motion_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    return error;
}

cudaError_t motion_cuda_init(struct motion_cuda *ret, const struct motion *m, void *memory,
                             const uint32_t *sums, struct motion_changes *changes,
                             cudaStream_t stream)
{
    const struct motion_room room = room_of(m);
    uint8_t *base = (uint8_t *)memory;
    const struct motion_camera camera = {(const struct motion *)(base + room.motion),
                                         (struct motion_state *)(base + room.state), sums, changes,
                                         (uint16_t *)(base + room.planes)};
    int most = 0;
    cudaError_t error = shared_most(&most);
    const size_t wanted = sizeof(struct motion_block) + motion_planes_bytes(m);
    *ret = {memory, wanted <= (size_t)most ? wanted : sizeof(struct motion_block)};
    // Memory that is not page-locked is read before these return.
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(base, &camera, sizeof camera, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(base + room.motion, m, sizeof *m, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(base + room.state, 0, motion_state_bytes(m), stream);
    return error;
}

cudaError_t motion_cuda_launch(const struct motion_cuda *const cameras[], int n,
                               cudaStream_t stream)
{
    struct motion_batch batch;
    cudaError_t error = cudaSuccess;
    for (int at = 0; at < n && error == cudaSuccess; at += MOTION_BATCH) {
        const int count = n - at < MOTION_BATCH ? n - at : MOTION_BATCH;
        batch.shared_bytes = 0;
        for (int i = 0; i < count; i++) {
            const struct motion_cuda *camera = cameras[at + i];
            batch.camera[i] = (const struct motion_camera *)camera->memory;
            if (camera->shared_bytes > batch.shared_bytes)
                batch.shared_bytes = camera->shared_bytes;
        }
        motion_kernel<<<count, MOTION_THREADS, batch.shared_bytes, stream>>>(batch);
        error = cudaGetLastError();
    }
    return error;
}
