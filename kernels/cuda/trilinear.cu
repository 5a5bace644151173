// A block has a row of threads for each of its points. A row covers the features, so that loads and
// stores are of whole lines. If f allows it, a thread takes four features at a time.
#include "kernels/cuda/launch.h"

namespace
{

constexpr unsigned CORNERS = TRILINEAR_CORNERS, AXES = TRILINEAR_AXES, LANES = TRILINEAR_LANES;
constexpr unsigned THREADS = 256; // per block

__device__ inline float times(float w, float x)
{
    return w * x;
}

__device__ inline float4 times(float w, float4 x)
{
    return make_float4(w * x.x, w * x.y, w * x.z, w * x.w);
}

__device__ inline float plus(float a, float b)
{
    return a + b;
}

__device__ inline float4 plus(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__device__ inline size_t first_point()
{
    return (size_t)blockIdx.x * blockDim.y + threadIdx.y;
}

__device__ inline size_t point_step()
{
    return (size_t)gridDim.x * blockDim.y;
}

// `columns`: number of V in a corner's features.
template <typename V>
__global__ void forward_kernel(V *__restrict__ out, const V *__restrict__ features,
                               const float *__restrict__ points, size_t n, unsigned columns)
{
    for (size_t p = first_point(); p < n; p += point_step()) {
        const trilinear_shares of = trilinear_shares_of(points + p * AXES);
        for (unsigned i = threadIdx.x; i < columns; i += blockDim.x) {
            const V *corner = features + p * CORNERS * columns + i;
            V sum = times(trilinear_weight(&of, 0), corner[0]);
#pragma unroll
            for (unsigned k = 1; k < CORNERS; k++)
                sum = plus(sum, times(trilinear_weight(&of, k), corner[(size_t)k * columns]));
            out[p * columns + i] = sum;
        }
    }
}

// A row of threads covers all corners of a point, so that stores are of whole lines even with three
// features.
template <typename V>
__global__ void features_kernel(V *__restrict__ grad_features, const V *__restrict__ grad_out,
                                const float *__restrict__ points, size_t n, unsigned columns)
{
    const unsigned elements = CORNERS * columns;
    for (size_t p = first_point(); p < n; p += point_step()) {
        const trilinear_shares of = trilinear_shares_of(points + p * AXES);
        for (unsigned i = threadIdx.x; i < elements; i += blockDim.x) {
            const unsigned k = i / columns;
            grad_features[p * elements + i] =
                times(trilinear_weight(&of, k), grad_out[p * columns + i - k * columns]);
        }
    }
}

// Each point has a thread for each of the LANES sums.
__global__ void points_kernel(float *__restrict__ grad_points, const float *__restrict__ grad_out,
                              const float *__restrict__ features, const float *__restrict__ points,
                              size_t n, unsigned f)
{
    const unsigned group = 0xffu << (threadIdx.y * LANES & 31u / LANES * LANES);
    for (size_t p = first_point(); p < n; p += point_step()) {
        const float *grad = grad_out + p * f, *corner = features + p * CORNERS * f;
        float d[CORNERS] = {};
        for (unsigned i = threadIdx.x; i < f; i += LANES)
#pragma unroll
            for (unsigned k = 0; k < CORNERS; k++)
                d[k] += grad[i] * corner[(size_t)k * f + i];
#pragma unroll
        for (unsigned k = 0; k < CORNERS; k++)
#pragma unroll
            for (unsigned half = LANES / 2; half > 0; half /= 2)
                d[k] += __shfl_xor_sync(group, d[k], half);
        if (threadIdx.x > 0)
            continue;
        const trilinear_shares of = trilinear_shares_of(points + p * AXES);
#pragma unroll
        for (unsigned axis = 0; axis < AXES; axis++)
            grad_points[p * AXES + axis] = trilinear_slope(&of, d, axis);
    }
}

struct extent {
    dim3 block;
    unsigned blocks;
};

// Returns a block of as many rows of up to `width` threads as fit, and the blocks for n points.
extent extent_of(size_t n, size_t width)
{
    extent of;
    of.block.x = width < THREADS / 2 ? (unsigned)width : THREADS / 2;
    of.block.y = THREADS / of.block.x;
    const size_t blocks = (n + of.block.y - 1) / of.block.y;
    of.blocks = blocks < INT32_MAX ? (unsigned)blocks : INT32_MAX;
    return of;
}

bool is_aligned(const void *at)
{
    return (uintptr_t)at % sizeof(float4) == 0;
}

template <typename V>
void forward(float *out, const float *features, const float *points, size_t n, size_t f,
             cudaStream_t stream)
{
    const size_t columns = f * sizeof(float) / sizeof(V);
    const extent of = extent_of(n, columns);
    forward_kernel<V><<<of.blocks, of.block, 0, stream>>>((V *)out, (const V *)features, points, n,
                                                          (unsigned)columns);
}

template <typename V>
void backward(float *grad_features, const float *grad_out, const float *points, size_t n, size_t f,
              cudaStream_t stream)
{
    const size_t columns = f * sizeof(float) / sizeof(V);
    const extent of = extent_of(n, CORNERS * columns);
    features_kernel<V><<<of.blocks, of.block, 0, stream>>>((V *)grad_features, (const V *)grad_out,
                                                           points, n, (unsigned)columns);
}

} // namespace

cudaError_t trilinear_cuda_forward(float *out, const float *features, const float *points, size_t n,
                                   size_t f, cudaStream_t stream)
{
    if (f % 4 == 0 && is_aligned(out) && is_aligned(features))
        forward<float4>(out, features, points, n, f, stream);
    else
        forward<float>(out, features, points, n, f, stream);
    return cudaGetLastError();
}

cudaError_t trilinear_cuda_backward(float *grad_features, float *grad_points, const float *grad_out,
                                    const float *features, const float *points, size_t n, size_t f,
                                    cudaStream_t stream)
{
    if (grad_features && f % 4 == 0 && is_aligned(grad_features) && is_aligned(grad_out))
        backward<float4>(grad_features, grad_out, points, n, f, stream);
    else if (grad_features)
        backward<float>(grad_features, grad_out, points, n, f, stream);
    if (grad_points) {
        const extent of = extent_of(n, LANES);
        points_kernel<<<of.blocks, of.block, 0, stream>>>(grad_points, grad_out, features, points,
                                                          n, (unsigned)f);
    }
    return cudaGetLastError();
}
