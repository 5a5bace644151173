// Trilinear interpolation for a program: passes its arrays, on the host or a GPU, to the kernels.
#include "client/gpu.h"

#include <errno.h>

#include "kernels/trilinear.h"

// Returns 0, -EINVAL or -ENOTSUP.
static int check(const struct framed_place *place, uint64_t n, uint64_t f)
{
    const uint32_t memory = place ? place->memory : FRAMED_RING_HOST;
    if (f < 1 || f > TRILINEAR_FEATURES_MAX ||
        n > PTRDIFF_MAX / (TRILINEAR_CORNERS * sizeof(float)) / f)
        return -EINVAL;
    if (memory != FRAMED_RING_HOST && memory != FRAMED_RING_CUDA)
        return -EINVAL;
#ifndef FRAMED_CUDA
    if (memory == FRAMED_RING_CUDA)
        return -ENOTSUP;
#endif
    return 0;
}

static int returned(int rc)
{
    if (rc == 0)
        return 0;
    errno = -rc;
    return -1;
}

int framed_trilinear_forward(float *out, const float *features, const float *points, uint64_t n,
                             uint64_t f, const struct framed_place *place)
{
    const int rc = check(place, n, f);
    if (rc < 0 || n == 0)
        return returned(rc);
#ifdef FRAMED_CUDA
    if (place && place->memory == FRAMED_RING_CUDA)
        return returned(gpu_trilinear_forward(out, features, points, n, f, place));
#endif
    trilinear_forward(out, features, points, n, f);
    return 0;
}

int framed_trilinear_backward(float *grad_features, float *grad_points, const float *grad_out,
                              const float *features, const float *points, uint64_t n, uint64_t f,
                              const struct framed_place *place)
{
    const int rc = grad_points && !features ? -EINVAL : check(place, n, f);
    if (rc < 0 || n == 0)
        return returned(rc);
#ifdef FRAMED_CUDA
    if (place && place->memory == FRAMED_RING_CUDA)
        return returned(gpu_trilinear_backward(grad_features, grad_points, grad_out, features,
                                               points, n, f, place));
#endif
    trilinear_backward(grad_features, grad_points, grad_out, features, points, n, f);
    return 0;
}
