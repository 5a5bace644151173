// Statistics on CUDA: the parameters of a launch, and the sums that its blocks share.
#ifndef FRAMED_KERNELS_CUDA_STATISTICS_ITEM_CUH
#define FRAMED_KERNELS_CUDA_STATISTICS_ITEM_CUH

#include "kernels/cuda/warp_sum.cuh"
#include "kernels/fixed.h"
#include "kernels/statistics.h"

enum {
    STATISTICS_BATCH = 32, // pictures per launch
    STATISTICS_THREADS_MAX = 384,
    STATISTICS_WARPS_MAX = 8,      // across a picture
    STATISTICS_BLOCKS_LIGHT = 792, // as many as fit on an H200; and twice as many
    STATISTICS_BLOCKS_ALL = 1584,
    STATISTICS_BLOCKS_FEW = 160,
    STATISTICS_MANY_ROWS = 16, // of pixels, per thread
    STATISTICS_FEW_ROWS = 4,
    STATISTICS_VECTOR = 16,     // pixels of a row that a thread reads at once
    STATISTICS_AHEAD_LIGHT = 6, // rows that it reads before it uses the first
    STATISTICS_AHEAD_ALL = 3,
    STATISTICS_COPIES = 4, // of a block's histogram, so that warps seldom wait for each other
    STATISTICS_LEVELS = 256,
    STATISTICS_ROOM = 2, // largest blocks that must fit on a multiprocessor: bounds registers
};

// The samples in a row: bytes, 10 bits in words, or anything else.
enum statistics_rows { ROWS_BYTES, ROWS_WORDS, ROWS_ANY };

// Sums beside histograms and cells, and maxima.
enum statistics_sum { SUM_LEVELS, SUM_SQUARES, SUM_LAPLACIAN, SUM_BLACK, SUM_WHITE, SUMS };
enum statistics_extreme { EXTREME_LOW, EXTREME_HIGH, EXTREMES }; // 255 minus the smallest level

// A picture's totals, in device memory. The last block that adds to them makes the result and
// zeroes them.
struct statistics_totals {
    uint64_t sum[SUMS];
    uint32_t extreme[EXTREMES];
    uint32_t histogram[STATISTICS_BINS];
    uint32_t done; // blocks that are done
};

struct statistics_item {
    uint8_t *data[PLANES_MAX];
    int32_t stride[PLANES_MAX];
    uint16_t width, height, columns, rows;
    uint16_t body;  // pixel columns before the part that is read pixel by pixel
    uint8_t format; // enum pixel_format
    bool uneven;    // cells do not begin with a word of four pixels
    uint8_t black, white;
    int16_t gray[3];
    struct statistics_totals *totals;
    struct luma_statistics *ret;
    uint32_t *cells;
};

struct statistics_batch {
    int rows; // rows of cells per block
    struct statistics_item item[STATISTICS_BATCH];
};

// Returns edge i of the cells along a side.
static inline FRAMED_HD unsigned cells_edge(unsigned i, unsigned cells, unsigned side)
{
    return i * side / cells;
}

// Returns the cell of a side that contains pixel i.
static inline FRAMED_HD unsigned cell_of(unsigned i, unsigned cells, unsigned side)
{
    return ((i + 1) * cells - 1) / side;
}

// Reflects i at the ends of a side; i is from -1 to `side`.
static inline FRAMED_HD int reflected(int i, int side)
{
    if (i < 0)
        return side > 1 ? 1 : 0;
    return i < side ? i : side > 1 ? side - 2 : 0;
}

// --- of the host

static inline enum statistics_rows statistics_rows_of(enum pixel_format format)
{
    const struct component luma = component_of(format, 0);
    const int bytes = source_is_10bit(format) ? 2 : 1;
    if (source_is_rgb(format) || luma.offset != 0 || luma.step != bytes)
        return ROWS_ANY;
    return bytes == 2 ? ROWS_WORDS : ROWS_BYTES;
}

// Rows on multiples of 16 bytes, and cells so wide that a word of four pixels is in at most two.
static inline bool has_body(const struct statistics *s, const struct image *src)
{
    const uintptr_t places = (uintptr_t)src->plane[0].data | (uintptr_t)src->plane[0].stride;
    return statistics_rows_of(s->format) != ROWS_ANY && places % STATISTICS_VECTOR == 0 &&
           s->width / s->columns >= 4;
}

// Returns an item without the places of its results.
static inline struct statistics_item item_of(const struct statistics *s, const struct image *src)
{
    struct statistics_item item = {};
    for (int p = 0; p < PLANES_MAX; p++) {
        item.data[p] = src->plane[p].data;
        item.stride[p] = (int32_t)src->plane[p].stride;
        item.gray[p] = s->gray[p];
    }
    item.width = (uint16_t)s->width;
    item.height = (uint16_t)s->height;
    item.columns = (uint16_t)s->columns;
    item.rows = (uint16_t)s->rows;
    item.body = has_body(s, src) ? item.width / STATISTICS_VECTOR * STATISTICS_VECTOR : 0;
    item.format = (uint8_t)s->format;
    item.uneven = s->width % s->columns != 0 || s->width / s->columns % 4 != 0;
    item.black = s->params.black;
    item.white = s->params.white;
    return item;
}

struct launch_shape {
    int threads_x, threads_y; // of a block, across and down
    int blocks;               // per picture, at most
};

// Sets the rows of a block, too. Many blocks have several rows each, so that all are on the device
// at once and their overhead occurs less often. Few blocks have more threads each.
static inline struct launch_shape launch_shape_of(struct statistics_batch *batch, int n, bool all)
{
    const int lanes = all ? LANES - 2 : LANES;
    int warps = 1, tallest = 1, rows = 1, sum = 0;
    for (int i = 0; i < n; i++) {
        const struct statistics_item *item = &batch->item[i];
        const int vectors = item->body / STATISTICS_VECTOR;
        const int wanted = item->body ? (vectors + lanes - 1) / lanes : STATISTICS_WARPS_MAX;
        const int tall = (item->height + item->rows - 1) / item->rows;
        warps = wanted > warps ? wanted : warps;
        tallest = tall > tallest ? tall : tallest;
        rows = item->rows > rows ? item->rows : rows;
        sum += item->rows;
    }
    warps = warps < STATISTICS_WARPS_MAX ? warps : STATISTICS_WARPS_MAX;
    const int blocks = all ? STATISTICS_BLOCKS_ALL : STATISTICS_BLOCKS_LIGHT;
    const int each = sum > STATISTICS_BLOCKS_FEW ? STATISTICS_MANY_ROWS : STATISTICS_FEW_ROWS;
    const int most = STATISTICS_THREADS_MAX / (warps * LANES);
    const int wanted = (tallest + each - 1) / each;
    batch->rows = (sum + blocks - 1) / blocks;
    return {warps * LANES, wanted < most ? wanted : most, (rows + batch->rows - 1) / batch->rows};
}

#endif
