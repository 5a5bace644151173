// Statistics on CUDA: the parameters of a launch, and a thread's columns of 16 pixels.
#ifndef FRAMED_KERNELS_CUDA_STATISTICS_COLUMNS_CUH
#define FRAMED_KERNELS_CUDA_STATISTICS_COLUMNS_CUH

#include "kernels/cuda/cluster.cuh"
#include "kernels/fixed.h"
#include "kernels/statistics.h"

// --- the parameters of a launch, and the sums that its blocks share

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

// --- columns
//
// The full pass only counts levels: squares, extremes and clipped pixels follow from the counts. A
// thread has pixels in 16-bit lanes, even and odd ones apart, with the number of its warp's copy of
// the counters in the lanes' upper bytes: four times a lane is then the offset of its level's
// counter, and contains four times the pixel, which the Laplacian needs. The Laplacian is a sum of
// |4 c - n|, n being the four neighbours, computed as 2 max(4 c, n) - 4 c - n: the sum of 4 c + n
// is eight times the sum of c, except at borders.

struct statistics_sums {
    uint64_t sum[SUMS];
    unsigned extreme[EXTREMES];
};

// The rows of a block, and a thread's share of them.
struct statistics_place {
    int top, bottom, y0, y1;
    int copy; // of the histogram
};

struct vector {
    unsigned word[4];
};

template <int ROWS>
static __device__ inline vector vector_load(const struct statistics_item *item, int x, int y)
{
    const uint8_t *row = item->data[0] + (ptrdiff_t)y * item->stride[0];
    if (ROWS == ROWS_BYTES) {
        const uint4 v = __ldg((const uint4 *)(row + x));
        return {{v.x, v.y, v.z, v.w}};
    }
    const int shift = item->format == PIXEL_P010 ? 8 : 2; // to the upper 8 bits of 10
    const uint4 a = __ldg((const uint4 *)(row + 2 * x));
    const uint4 b = __ldg((const uint4 *)(row + 2 * x) + (x + 8 < item->width ? 1 : 0));
    return {{__byte_perm(a.x >> shift, a.y >> shift, 0x6420),
             __byte_perm(a.z >> shift, a.w >> shift, 0x6420),
             __byte_perm(b.x >> shift, b.y >> shift, 0x6420),
             __byte_perm(b.z >> shift, b.w >> shift, 0x6420)}};
}

static __device__ inline unsigned vector_sum(const vector *v)
{
    unsigned sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++)
        sum = __dp4a(v->word[k], 0x01010101u, sum);
    return sum;
}

// Sums of four columns of words; a word may reach into the next cell.
struct cell_sums {
    unsigned all[4], next[4]; // of a word; of its pixels past the next edge
    unsigned mask[4];         // ones for those pixels
    bool uneven;
};

static __device__ inline void cell_sums_init(cell_sums *sums, const struct statistics_item *item,
                                             int x)
{
    sums->uneven = item->uneven;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        sums->all[k] = sums->next[k] = sums->mask[k] = 0;
        if (item->uneven) {
            const unsigned at = x + 4 * k, cell = cell_of(at, item->columns, item->width);
            const unsigned left = cells_edge(cell + 1, item->columns, item->width) - at;
            sums->mask[k] = left < 4 ? 0x01010101u << 8 * left : 0;
        }
    }
}

static __device__ inline void cell_sums_add(cell_sums *sums, const vector *v)
{
#pragma unroll
    for (int k = 0; k < 4; k++)
        sums->all[k] = __dp4a(v->word[k], 0x01010101u, sums->all[k]);
    if (sums->uneven) {
#pragma unroll
        for (int k = 0; k < 4; k++)
            sums->next[k] = __dp4a(v->word[k], sums->mask[k], sums->next[k]);
    }
}

// Returns the sum of all pixels.
static __device__ inline unsigned
cell_sums_flush(const cell_sums *sums, const struct statistics_item *item, int x, unsigned *cells)
{
    unsigned all = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const unsigned cell = cell_of(x + 4 * k, item->columns, item->width);
        atomicAdd(&cells[cell], sums->all[k] - sums->next[k]);
        if (sums->mask[k])
            atomicAdd(&cells[cell + 1], sums->next[k]);
        all += sums->all[k];
    }
    return all;
}

// --- the light pass

// Extremes of 16-bit lanes with pixels in their upper bytes: the lower bytes do not change which of
// two pixels wins.
struct extremes {
    unsigned least[2], largest[2];
};

static __device__ inline void extremes_add(extremes *e, const vector *v)
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const unsigned lanes[2] = {v->word[k] << 8, v->word[k]};
#pragma unroll
        for (int i = 0; i < 2; i++) {
            e->least[i] = __vminu2(e->least[i], lanes[i]);
            e->largest[i] = __vmaxu2(e->largest[i], lanes[i]);
        }
    }
}

static __device__ inline void extremes_flush(const extremes *e, struct statistics_sums *sums)
{
    const unsigned least = __vminu2(e->least[0], e->least[1]);
    const unsigned largest = __vmaxu2(e->largest[0], e->largest[1]);
    sums->extreme[EXTREME_LOW] =
        max(sums->extreme[EXTREME_LOW], 255 - min(least >> 24, least >> 8 & 255));
    sums->extreme[EXTREME_HIGH] =
        max(sums->extreme[EXTREME_HIGH], max(largest >> 24, largest >> 8 & 255));
}

template <int ROWS>
static __device__ inline void light_columns(const struct statistics_item *item,
                                            const struct statistics_place *place, int x,
                                            struct statistics_sums *sums, unsigned *cells)
{
    extremes e = {{~0u, ~0u}, {0, 0}};
    unsigned squares = 0;
    cell_sums cell;
    cell_sums_init(&cell, item, x);
    for (int y = place->y0; y < place->y1; y += STATISTICS_AHEAD_LIGHT) {
        vector v[STATISTICS_AHEAD_LIGHT];
#pragma unroll
        for (int i = 0; i < STATISTICS_AHEAD_LIGHT; i++)
            if (y + i < place->y1)
                v[i] = vector_load<ROWS>(item, x, y + i);
#pragma unroll
        for (int i = 0; i < STATISTICS_AHEAD_LIGHT; i++)
            if (y + i < place->y1) {
                cell_sums_add(&cell, &v[i]);
                extremes_add(&e, &v[i]);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    squares = __dp4a(v[i].word[k], v[i].word[k], squares);
            }
    }
    sums->sum[SUM_SQUARES] += squares;
    sums->sum[SUM_LEVELS] += cell_sums_flush(&cell, item, x, cells);
    extremes_flush(&e, sums);
}

// --- all of it

struct lanes {
    unsigned even[4], odd[4];
};

static __device__ inline lanes lanes_of(const vector *v, unsigned copy)
{
    lanes to;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        to.even[k] = __byte_perm(v->word[k], copy, 0x4240);
        to.odd[k] = __byte_perm(v->word[k], copy, 0x4341);
    }
    return to;
}

static __device__ inline void count_level(unsigned *histogram, unsigned offset)
{
    atomicAdd((unsigned *)((uint8_t *)histogram + offset), 1u);
}

// Counts two levels, whose offsets are the halves of a word.
static __device__ inline void count_two(unsigned *histogram, unsigned offsets)
{
    count_level(histogram, __byte_perm(offsets, 0, 0x4410));
    count_level(histogram, __byte_perm(offsets, 0, 0x4432));
}

static __device__ inline void count_levels(unsigned *histogram, const lanes *four)
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        count_two(histogram, four->even[k]);
        count_two(histogram, four->odd[k]);
    }
}

static __device__ inline lanes lanes_four_times(const lanes *l)
{
    lanes four;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        four.even[k] = l->even[k] * 4;
        four.odd[k] = l->odd[k] * 4;
    }
    return four;
}

// Adds the larger of four times each pixel and the sum of its neighbours. The left neighbour is in
// the upper half of `left`, the right one in the lower half of `right`.
static __device__ inline void larger_add(unsigned sum[4], const lanes *above, const lanes *here,
                                         const lanes *four, const lanes *below, unsigned left,
                                         unsigned right)
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const unsigned before = k > 0 ? here->odd[k - 1] : left;
        const unsigned after = k < 3 ? here->even[k + 1] : right;
        const unsigned even =
            above->even[k] + here->odd[k] + __byte_perm(before, here->odd[k], 0x5432);
        const unsigned odd =
            above->odd[k] + here->even[k] + __byte_perm(here->even[k], after, 0x5432);
        sum[k] += __viaddmax_u16x2(even, below->even[k], four->even[k]) +
                  __viaddmax_u16x2(odd, below->odd[k], four->odd[k]);
    }
}

// The position of a thread's columns.
struct column_place {
    bool counts;      // else it only provides pixels to its neighbours
    bool first, last; // of the picture
    bool ends;        // the body
};

// The state that moves down the columns: the rows above, here and below in turn.
struct column_rows {
    lanes above, here;
    vector raw; // of here
    cell_sums cell;
    int border; // excess of the neighbours' sum over four times the pixels'
};

// Takes the row below, and counts the row here. Called by whole warps.
static __device__ inline void column_roll(struct column_rows *rows, const vector *next,
                                          const struct statistics_place *place,
                                          const struct column_place *column, unsigned sum[4],
                                          unsigned *histogram)
{
    const lanes below = lanes_of(next, place->copy), four = lanes_four_times(&rows->here);
    unsigned left = __shfl_up_sync(~0u, rows->here.odd[3], 1);
    unsigned right = __shfl_down_sync(~0u, rows->here.even[0], 1);
    if (column->first) {
        left = rows->here.odd[0] << 16;
        rows->border += (int)(left >> 16) - (int)(rows->here.even[0] & 0xffff);
    }
    if (column->ends) {
        right = column->last ? rows->here.even[3] >> 16 : right;
        rows->border += (int)(right & 0xffff) - (int)(rows->here.odd[3] >> 16);
    }
    if (column->counts)
        count_levels(histogram, &four);
    cell_sums_add(&rows->cell, &rows->raw);
    larger_add(sum, &rows->above, &rows->here, &four, &below, left, right);
    rows->above = rows->here;
    rows->here = below;
    rows->raw = *next;
}

// Adds columns of 16 pixels at x. Called by whole warps; their first and last lanes only provide
// pixels to their neighbours, as do lanes with x beyond the body; any pixels will do if none exist.
template <int ROWS>
static __device__ inline void
all_columns(const struct statistics_item *item, const struct statistics_place *place, int x,
            struct statistics_sums *sums, unsigned *histogram, unsigned *cells)
{
    const int lane = threadIdx.x % LANES, height = item->height;
    const int at = x < 0 ? 0 : x < item->width ? x : item->body - STATISTICS_VECTOR;
    const struct column_place column = {lane > 0 && lane < LANES - 1 && x < item->body, x == 0,
                                        x + STATISTICS_VECTOR == item->width,
                                        x + STATISTICS_VECTOR == item->body};
    const vector top = vector_load<ROWS>(item, at, reflected(place->y0 - 1, height));
    struct column_rows rows;
    unsigned larger = 0;
    int y = place->y0;
    rows.raw = vector_load<ROWS>(item, at, y);
    rows.above = lanes_of(&top, place->copy);
    rows.here = lanes_of(&rows.raw, place->copy);
    rows.border = (int)vector_sum(&top) - (int)vector_sum(&rows.raw);
    cell_sums_init(&rows.cell, item, at);
    for (; y + STATISTICS_AHEAD_ALL <= place->y1; y += STATISTICS_AHEAD_ALL) {
        vector v[STATISTICS_AHEAD_ALL];
        unsigned sum[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < STATISTICS_AHEAD_ALL; i++)
            v[i] = vector_load<ROWS>(item, at, reflected(y + i + 1, height));
#pragma unroll
        for (int i = 0; i < STATISTICS_AHEAD_ALL; i++)
            column_roll(&rows, &v[i], place, &column, sum, histogram);
#pragma unroll
        for (int k = 0; k < 4; k++)
            larger = __dp2a_lo(sum[k], 0x0101u, larger);
    }
#pragma unroll 1
    for (; y < place->y1; y++) {
        const vector v = vector_load<ROWS>(item, at, reflected(y + 1, height));
        unsigned sum[4] = {0, 0, 0, 0};
        column_roll(&rows, &v, place, &column, sum, histogram);
        for (int k = 0; k < 4; k++)
            larger = __dp2a_lo(sum[k], 0x0101u, larger);
    }
    if (!column.counts)
        return;
    const vector bottom = vector_load<ROWS>(item, at, place->y1 - 1);
    rows.border += (int)vector_sum(&rows.raw) - (int)vector_sum(&bottom);
    const unsigned pixels = cell_sums_flush(&rows.cell, item, x, cells);
    larger -= STATISTICS_VECTOR * (place->y1 - place->y0) * place->copy * STATISTICS_LEVELS * 4;
    sums->sum[SUM_LEVELS] += pixels;
    sums->sum[SUM_LAPLACIAN] +=
        (uint64_t)(int64_t)(2 * (int)larger - 8 * (int)pixels - rows.border);
}

template <int ROWS, bool ALL>
static __device__ inline void
body(const struct statistics_item *item, const struct statistics_place *place,
     struct statistics_sums *sums, unsigned *histogram, unsigned *cells)
{
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int lanes = ALL ? LANES - 2 : LANES, step = blockDim.x / LANES * lanes;
    if (place->y0 >= place->y1)
        return;
    for (int i = warp * lanes; i * STATISTICS_VECTOR < item->body; i += step) {
        const int x = (i + lane - ALL) * STATISTICS_VECTOR;
        if (ALL)
            all_columns<ROWS>(item, place, x, sums, histogram, cells);
        else if (x < item->body)
            light_columns<ROWS>(item, place, x, sums, cells);
    }
}

#endif
