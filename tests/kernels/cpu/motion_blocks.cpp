// The CUDA kernel of motion (kernels/cuda/motion.cuh) on the host.
#undef _FORTIFY_SOURCE
#include "tests/kernels/cpu/cuda_block.h"

#include "kernels/cuda/motion.cuh"

static void run_kernel(const void *batch)
{
    motion_kernel<false>(*(const motion_batch *)batch);
}

// Runs one step of two cameras with `blocks` blocks each.
extern "C" void motion_on_host(const struct motion *const motion[2],
                               struct motion_state *const state[2], const uint32_t *const sums[2],
                               struct motion_changes *const changes[2], int blocks)
{
    static motion_batch batch;
    for (int i = 0; i < 2; i++) {
        const size_t bytes = offsetof(motion_camera, state) + motion_state_bytes(motion[i]);
        uint16_t *planes = (uint16_t *)malloc(blocks * motion_planes_bytes(motion[i], blocks));
        motion_camera *camera = (motion_camera *)aligned_alloc(64, (bytes + 63) / 64 * 64);
        camera->at = {sums[i], changes[i], planes};
        camera->motion = *motion[i];
        memcpy(&camera->state, state[i], motion_state_bytes(motion[i]));
        batch.camera[i] = camera;
    }
    grid_run({2 * (unsigned)blocks, 1, 1}, {MOTION_THREADS, 1, 1}, run_kernel, &batch, blocks);
    for (int i = 0; i < 2; i++) {
        memcpy(state[i], &batch.camera[i]->state, motion_state_bytes(motion[i]));
        free(batch.camera[i]->at.planes);
        free(batch.camera[i]);
    }
}
