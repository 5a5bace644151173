// Statistics on CUDA: pictures with the same kernel share a launch. Kernel: statistics.cuh.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/statistics.cuh"

static_assert(sizeof(struct statistics_totals) <= STATISTICS_CUDA_BYTES, "totals");
static_assert(sizeof(struct statistics_batch) <= 4096, "a kernel's arguments");
static_assert(sizeof(struct luma_statistics) % sizeof(uint32_t) == 0, "the result is words");

typedef void statistics_kernel_fn(struct statistics_batch);

static statistics_kernel_fn *const kernels[] = {
    statistics_kernel<ROWS_BYTES, false>, statistics_kernel<ROWS_BYTES, true>,
    statistics_kernel<ROWS_WORDS, false>, statistics_kernel<ROWS_WORDS, true>,
    statistics_kernel<ROWS_ANY, false>,   statistics_kernel<ROWS_ANY, true>,
};

enum { KERNELS = sizeof kernels / sizeof *kernels };

static int kernel_of(const struct statistics *s)
{
    return 2 * statistics_rows_of(s->format) + s->params.all;
}

cudaError_t statistics_cuda_load(void)
{
    cudaError_t error = cudaSuccess;
    struct cudaFuncAttributes attributes;
    for (int i = 0; i < KERNELS && error == cudaSuccess; i++)
        error = cudaFuncGetAttributes(&attributes, (const void *)kernels[i]);
    return error;
}

static cudaError_t batch_launch(struct statistics_batch *batch, int n, int kernel,
                                cudaStream_t stream)
{
    const struct launch_shape shape = launch_shape_of(batch, n, kernel % 2);
    kernels[kernel]<<<dim3(shape.blocks, n), dim3(shape.threads_x, shape.threads_y), 0, stream>>>(
        *batch);
    return cudaGetLastError();
}

cudaError_t statistics_cuda_launch(const struct statistics_cuda_picture pictures[], int n,
                                   cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        struct statistics_batch batch;
        int items = 0;
        for (int i = 0; i < n && error == cudaSuccess; i++) {
            const struct statistics_cuda_picture *picture = &pictures[i];
            if (kernel_of(picture->statistics) == kernel) {
                struct statistics_item *item = &batch.item[items++];
                *item = item_of(picture->statistics, &picture->src);
                item->totals = (struct statistics_totals *)picture->workspace;
                item->ret = picture->ret;
                item->cells = picture->cells;
            }
            if (items == STATISTICS_BATCH || (items > 0 && i == n - 1)) {
                error = batch_launch(&batch, items, kernel, stream);
                items = 0;
            }
        }
    }
    return error;
}
