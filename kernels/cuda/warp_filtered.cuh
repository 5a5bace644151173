// The warp with a filter that weighs all samples under an output pixel, where the output's x is the
// source's: a block makes a run of one output row. Its threads first sum up the source's columns
// that the run reads, which lie side by side, and put the sums into shared memory; then each makes
// a pixel of them.
#ifndef FRAMED_KERNELS_CUDA_WARP_FILTERED_CUH
#define FRAMED_KERNELS_CUDA_WARP_FILTERED_CUH

#include "kernels/cuda/schedule.h"
#include "kernels/warp_pixel.h"

enum {
    FILTERED_RUN = 128,   // pixels of a block, one a thread
    FILTERED_SUMS = 8192, // of one block, of all components
};

// One cuda_item.
struct filtered_item {
    struct plane src[PLANES_MAX];
    uint8_t *dst;
    const struct warp *warp; // device memory
    struct band band;
    int left, right; // columns of the output that see some of the picture
};

struct filtered_batch {
    struct filtered_item item[CUDA_ITEMS_MAX];
};
static_assert(sizeof(struct filtered_batch) <= 4000, "kernel parameters");

struct run_columns {
    int from, n;
};

// The source columns that output columns [x0, x1) read, all of which see some of the picture. Spans
// are monotone.
static inline FRAMED_HD struct run_columns run_columns_of(const struct filter_axis *axis, int x0,
                                                          int x1)
{
    const struct filter_span a = axis->spans[x0], b = axis->spans[x1 - 1];
    const int from = a.first < b.first ? a.first : b.first;
    const int a_end = a.first + a.count, b_end = b.first + b.count;
    const struct run_columns columns = {from, (a_end > b_end ? a_end : b_end) - from};
    return columns;
}

// The columns that see some of the picture.
static inline void filtered_visible(const struct warp *warp, int *left, int *right)
{
    const uint16_t *coverage = warp->filtered.coverage_x;
    *left = 0;
    *right = warp->width;
    while (*left < *right && coverage[*left] == 0)
        ++*left;
    while (*right > *left && coverage[*right - 1] == 0)
        --*right;
}

// Whether the sums of each run fit.
static inline bool filtered_fits(const struct warp *warp)
{
    int left, right;
    if (!filter_weighs(warp->filter) || warp->filtered.turned)
        return false;
    filtered_visible(warp, &left, &right);
    for (int x = 0; x < warp->width; x += FILTERED_RUN) {
        const int x0 = x > left ? x : left;
        const int x1 = x + FILTERED_RUN < right ? x + FILTERED_RUN : right;
        if (x0 >= x1)
            continue;
        const int luma = run_columns_of(&warp->filtered.luma_x, x0, x1).n;
        const int chroma = run_columns_of(&warp->filtered.chroma_x, x0, x1).n;
        const int sums = source_is_rgb(warp->source) ? 3 * luma : luma + 2 * chroma;
        if (sums > FILTERED_SUMS)
            return false;
    }
    return true;
}

// The sums of column `i` of a run's.
static __device__ inline int run_sum(const int16_t *sums, const struct filter_axis *axis, int x,
                                     int from)
{
    const struct filter_span span = axis->spans[x];
    const int16_t *weights = axis->weights + (ptrdiff_t)x * axis->stride;
    int sum = 0;
    for (int i = 0; i < span.count; i++)
        sum += weights[i] * sums[span.first - from + i];
    return filtered_row(sum);
}

// `seen`: the pixel has levels, for it sees some of the picture.
template <typename T>
static __device__ inline void pixel_store(const struct warp *warp, uint8_t *to, int x, int y,
                                          const uint8_t level[3], bool seen)
{
    const T *table = (const T *)&warp->table;
    const bool planar = warp->layout == LAYOUT_NCHW;
    const size_t pixel = (size_t)y * warp->width + x, plane = (size_t)warp->width * warp->height;
    T *dst = (T *)to + (planar ? pixel : pixel * warp->channels);
#pragma unroll
    for (int c = 0; c < 3; c++)
        if (c < warp->channels)
            dst[planar ? c * plane : c] =
                seen ? table[256 * c + level[c]] : (T)warp->fill_element[c];
}

// T has the size of the tensor's element.
template <enum pixel_format FORMAT, typename T>
static __global__ void __launch_bounds__(FILTERED_RUN)
    warp_filtered(const __grid_constant__ struct filtered_batch batch)
{
    __shared__ int16_t sums[FILTERED_SUMS];
    const struct filtered_item *item = &batch.item[blockIdx.z];
    const struct warp *__restrict__ warp = item->warp;
    const struct filter_tables *f = &warp->filtered;
    const int begin = blockIdx.x * FILTERED_RUN, y = item->band.y0 + blockIdx.y;
    if (begin >= warp->width || y >= item->band.y1)
        return;
    const int x0 = begin > item->left ? begin : item->left;
    const int x1 = begin + FILTERED_RUN < item->right ? begin + FILTERED_RUN : item->right;
    const int first = components_first(warp), end = components_end(warp, FORMAT);
    struct run_columns luma = {0, 0}, chroma = {0, 0};
    if (x0 < x1 && f->coverage_y[y] > 0) {
        struct image src;
        for (int i = 0; i < PLANES_MAX; i++)
            src.plane[i] = item->src[i];
        luma = run_columns_of(&f->luma_x, x0, x1);
        chroma = source_is_rgb(FORMAT) ? luma : run_columns_of(&f->chroma_x, x0, x1);
        int16_t *to = sums;
        for (int c = first; c < end; c++) {
            const bool of_luma = c == 0 || source_is_rgb(FORMAT);
            const struct run_columns columns = of_luma ? luma : chroma;
            const struct filter_axis *axis = of_luma ? &f->luma_y : &f->chroma_y;
            for (int i = threadIdx.x; i < columns.n; i += FILTERED_RUN)
                to[i] = (int16_t)column_filtered(&src, FORMAT, c, columns.from + i, axis, y);
            to += columns.n;
        }
    }
    __syncthreads();

    const int x = begin + threadIdx.x;
    if (x >= warp->width)
        return;
    uint8_t level[3];
    const bool seen = f->coverage_x[x] > 0 && f->coverage_y[y] > 0;
    if (seen) {
        const int coverage = coverage_of(f->coverage_x[x], f->coverage_y[y]);
        const struct filter_axis *axis = source_is_rgb(FORMAT) ? &f->luma_x : &f->chroma_x;
        const int16_t *rest = sums + (first == 0 ? luma.n : 0);
        int sample[3] = {0, 0, 0};
        if (first == 0)
            sample[0] = run_sum(sums, &f->luma_x, x, luma.from);
        for (int c = 1; c < end; c++)
            sample[c] = run_sum(rest + (c - 1) * chroma.n, axis, x, chroma.from);
        levels_of_samples(warp, FORMAT, sample, coverage, level);
    }
    pixel_store<T>(warp, item->dst, x, y, level, seen);
}

#endif
