// Detection on CUDA: the batches and their launches. Kernels: detect.cuh.
#include "kernels/cuda/detect.cuh"
#include "kernels/cuda/launch.h"

enum { DETECT_BYTES = (sizeof(struct detect) + 255) / 256 * 256 };

size_t detect_cuda_bytes(const struct detect *d, int pictures)
{
    return DETECT_BYTES + detect_layout_of(d).bytes * (size_t)pictures;
}

cudaError_t detect_cuda_init(const struct detect *d, void *workspace, int pictures,
                             cudaStream_t stream)
{
    const size_t step = detect_layout_of(d).bytes;
    uint8_t *base = (uint8_t *)workspace + DETECT_BYTES;
    cudaError_t error = cudaMemcpyAsync(workspace, d, sizeof *d, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess) // pageable memory: read before this returns
        error = cudaMemset2DAsync(base, step, 0, COUNTS * sizeof(uint32_t), pictures, stream);
    return error;
}

static cudaError_t batch_launch(const struct detect *d, const struct detect_batch *batch,
                                bool early, cudaStream_t stream)
{
    const dim3 scans((d->params.anchors + SCAN_ANCHORS - 1) / SCAN_ANCHORS, batch->n);
    cudaLaunchAttribute attribute;
    cudaLaunchConfig_t finish = {};
    scan_for(d)<<<scans, SCAN_THREADS, 0, stream>>>(*batch);
    const cudaError_t error = cudaGetLastError();
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    finish.gridDim = batch->n;
    finish.blockDim = FINISH_THREADS;
    finish.stream = stream;
    finish.attrs = &attribute;
    finish.numAttrs = early ? 1 : 0;
    return error ? error : cudaLaunchKernelEx(&finish, detect_finish, *batch);
}

// Sets *ret_early if a kernel may start on the device before the previous one is done: both the
// device and the compiled code must be able to wait for it.
static cudaError_t device_is_early(bool *ret_early)
{
    static const int compiled[] = {__CUDA_ARCH_LIST__}; // ascending
    int device, major = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    *ret_early = major >= 9 && compiled[sizeof compiled / sizeof compiled[0] - 1] >= 900;
    return error;
}

cudaError_t detect_cuda_launch(const struct detect *d, const struct detect_input in[], int n,
                               struct detect_result *results, void *workspace, cudaStream_t stream)
{
    struct detect_batch batch;
    bool early;
    cudaError_t error = device_is_early(&early);
    batch.detect = (const struct detect *)workspace;
    batch.layout = detect_layout_of(d);
    batch.result_bytes = detect_result_bytes(d);
    for (int at = 0; at < n && error == cudaSuccess; at += DETECT_BATCH) {
        batch.n = n - at < DETECT_BATCH ? n - at : DETECT_BATCH;
        batch.pictures = (uint8_t *)workspace + DETECT_BYTES + batch.layout.bytes * (size_t)at;
        batch.results = (uint8_t *)results + batch.result_bytes * (size_t)at;
        memcpy(batch.in, in + at, (size_t)batch.n * sizeof in[0]);
        error = batch_launch(d, &batch, early, stream);
    }
    return error;
}
