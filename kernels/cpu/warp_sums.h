// Sums of the columns of a plane for a filter that weights rows: a template, see fixed_lanes.h. A
// pass reads some rows of a plane once and makes a row of sums per component: samples with 7
// fraction bits, not centred.
#ifndef FRAMED_KERNELS_CPU_WARP_SUMS_H
#define FRAMED_KERNELS_CPU_WARP_SUMS_H

#if defined(__aarch64__)
#include "kernels/cpu/filter_neon.h"
#else
#include "kernels/cpu/filter_x86.h"
#endif
#include "kernels/cpu/fixed_lanes.h"
#include "kernels/ops.h"

enum { QUARTER = LANES / 2, FEW_PAIRS = 4 };

// A component's row of sums; NULL: unused.
struct column_row {
    int16_t *to; // starts at the pass's unit `base`
    struct component of;
};

// The samples of a plane form units, after which its components repeat. A block of them fills two
// registers of sums, in quarters; a quarter holds one component alone.
struct column_pass {
    enum pixel_format format;
    const struct filter_axis *y;
    int plane, unit;     // unit: in samples
    int from, end, base; // units [from, end); the first block may start earlier, at base
    int limit;           // last start of a block; below 0: rows are shorter than a block
    int rows;
    struct column_row row[COMPONENTS_MAX];
    bool split; // a block has samples of several components
    struct column_split order;
    struct {
        int16_t *to;
        int step; // sums per unit
    } quarter[4];
    int16_t *spare; // QUARTER of them, for unused sums
};

// Consecutive rows of a plane.
struct weighed_rows {
    const uint8_t *first;
    ptrdiff_t stride;
    int count, bits;
    const int16_t *weights;
};

static inline FRAMED_HD int sample_bytes_of(enum pixel_format format)
{
    return source_is_10bit(format) ? 2 : 1;
}

// Units in a block; triples count as groups of four.
static inline FRAMED_HD int block_units(int unit)
{
    return PIXELS / (unit == 3 ? 4 : unit);
}

// --- a block: two registers of sums

// 12-bit weights: high parts of 7 bits and low parts of 5.
struct few_weights {
    vec_u8 high[FEW_PAIRS], low[FEW_PAIRS];
};

static inline FRAMED_HD struct few_weights few_weights_of(const struct weighed_rows *rows,
                                                          int pairs)
{
    struct few_weights w = {0};
    for (int k = 0; k < pairs; k++) {
        const int w0 = rows->weights[2 * k], w1 = rows->weights[2 * k + 1];
        w.high[k] = weights_of_pair(w0 >> 5, w1 >> 5);
        w.low[k] = weights_of_pair(w0 & 31, w1 & 31);
    }
    return w;
}

// At most 8 rows, an even number if `both`: no sum exceeds 16 bits. The low parts of up to 5 rows
// sum to at most 128, since all parts sum to 1 << 12.
static inline FRAMED_HD void block_few(vec_s16 v[2], const uint8_t *row, ptrdiff_t stride,
                                       const struct few_weights *w, int pairs, bool both,
                                       bool triples)
{
    struct column_sums sums = {0};
    for (int k = 0; k < pairs; k++, row += 2 * stride) {
        const vec_u8 a = block_load(row, triples);
        const vec_u8 b = both || k < pairs - 1 ? block_load(row + stride, triples) : a;
        column_sums_add(&sums, a, b, w->high[k], w->low[k], false);
    }
    const bool fits = 2 * pairs - !both <= 5;
    for (int i = 0; i < 2; i++) {
        const vec_s16 low = fits ? mulhrs_s16((vec_s16)sums.low[i], all_s16(1 << 10))
                                 : (vec_s16)((sums.low[i] + 16) >> 5);
        v[i] = (vec_s16)sums.high[i] + low;
    }
}

// 14-bit weights in halves of 7 bits, any number of rows: the sum of the low parts is carried over
// after each pair.
static inline FRAMED_HD void block_many(vec_s16 v[2], const uint8_t *row,
                                        const struct weighed_rows *rows, bool triples)
{
    struct column_sums sums = {0};
    for (int k = 0; k < rows->count; k += 2, row += 2 * rows->stride) {
        const int w0 = rows->weights[k], w1 = rows->weights[k + 1]; // or the 0 after the last
        const vec_u8 a = block_load(row, triples) ^ 128;
        const vec_u8 b = k + 1 < rows->count ? block_load(row + rows->stride, triples) ^ 128 : a;
        column_sums_add(&sums, a, b, weights_of_pair(w0 >> 7, w1 >> 7),
                        weights_of_pair(w0 & 127, w1 & 127), true);
        for (int i = 0; i < 2; i++) {
            sums.high[i] += (vec_u16)((vec_s16)sums.low[i] >> 7);
            sums.low[i] &= 127;
        }
    }
    for (int i = 0; i < 2; i++)
        v[i] = (vec_s16)(sums.high[i] + ((sums.low[i] + 64) >> 7)) + 128 * 128;
}

// 10-bit samples in words.
static inline FRAMED_HD void block_words(vec_s16 v[2], const uint8_t *row,
                                         const struct weighed_rows *rows, enum pixel_format format)
{
    struct word_sums sums[2];
    for (int i = 0; i < 2; i++)
        sums[i].part[0] = sums[i].part[1] = all_s32(1 << (rows->bits - 6));
    for (int k = 0; k < rows->count; k += 2, row += 2 * rows->stride) {
        const uint8_t *next = k + 1 < rows->count ? row + rows->stride : row;
        const word_weights w = word_weights_of(rows->weights + k);
        for (int i = 0; i < 2; i++)
            word_sums_add(&sums[i], samples_10bit(format, load_s16(row + i * VECTOR_BYTES)),
                          samples_10bit(format, load_s16(next + i * VECTOR_BYTES)), w);
    }
    for (int i = 0; i < 2; i++)
        v[i] = word_sums_narrow(&sums[i], rows->bits - 5);
}

// --- rows of blocks

enum column_way { COLUMNS_COPY, COLUMNS_FEW, COLUMNS_MANY, COLUMNS_WORDS };

// The other arguments are constants.
static inline FRAMED_HD void blocks_make(const struct column_pass *pass,
                                         const struct weighed_rows *rows, enum pixel_format format,
                                         enum column_way way, int pairs, bool both, bool split,
                                         bool triples)
{
    const struct few_weights weights = few_weights_of(rows, way == COLUMNS_FEW ? pairs : 0);
    const struct weighed_rows from = *rows;
    const struct column_split order = pass->order;
    const int unit = triples ? 3 : pass->unit, bytes = unit * sample_bytes_of(format);
    const int step = block_units(split ? unit : 1), limit = pass->limit, base = pass->base;
    int16_t *to[4];
    int each[4];
    for (int i = 0; i < 4; i++) {
        to[i] = pass->quarter[i].to;
        each[i] = pass->quarter[i].step;
    }
    for (int u = pass->from; u < pass->end; u += step) {
        const int at = u < limit ? u : limit;
        const uint8_t *row = from.first + (ptrdiff_t)at * bytes;
        vec_s16 v[2];
        if (way == COLUMNS_FEW)
            block_few(v, row, from.stride, &weights, pairs, both, triples);
        else if (way == COLUMNS_MANY)
            block_many(v, row, &from, triples);
        else if (way == COLUMNS_WORDS)
            block_words(v, row, &from, format);
        else
            block_copy(v, block_load(row, triples));
        if (!split && way == COLUMNS_WORDS) {
            store_s16(to[0] + at - base, v[0]);
            store_s16(to[0] + at - base + LANES, v[1]);
        } else if (!split) {
            columns_store(to[0] + at - base, v[0], v[1]);
        } else {
            int16_t *quarter[4];
            for (int i = 0; i < 4; i++)
                quarter[i] = to[i] + (ptrdiff_t)(at - base) * each[i];
            columns_split(quarter, &order, v, way == COLUMNS_WORDS);
        }
    }
}

static inline FRAMED_HD void blocks_make8(const struct column_pass *pass,
                                          const struct weighed_rows *rows, bool split, bool triples)
{
    if (rows->count == 1) {
        blocks_make(pass, rows, PIXEL_NV12, COLUMNS_COPY, 0, false, split, triples);
        return;
    }
    if (rows->bits == WEIGHT_BITS) {
        blocks_make(pass, rows, PIXEL_NV12, COLUMNS_MANY, 0, false, split, triples);
        return;
    }
    switch (rows->count) {
#define CASE(count)                                                                                \
    case count:                                                                                    \
        blocks_make(pass, rows, PIXEL_NV12, COLUMNS_FEW, (count + 1) / 2, count % 2 == 0, split,   \
                    triples);                                                                      \
        break;
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
#undef CASE
    }
}

static inline FRAMED_HD void blocks_make10(const struct column_pass *pass,
                                           const struct weighed_rows *rows, bool split)
{
    if (pass->format == PIXEL_P010)
        blocks_make(pass, rows, PIXEL_P010, COLUMNS_WORDS, 0, false, split, false);
    else
        blocks_make(pass, rows, PIXEL_YUV420P10, COLUMNS_WORDS, 0, false, split, false);
}

// For rows shorter than a block.
static void short_rows_make(const struct column_pass *pass, const struct weighed_rows *rows)
{
    const enum pixel_format format = pass->format;
    const int bytes = sample_bytes_of(format);
    for (int r = 0; r < pass->rows; r++) {
        const struct component k = pass->row[r].of;
        const int n = pass->end * pass->unit * bytes / k.step;
        for (int i = 0; i < n; i++) {
            const uint8_t *at = rows->first + i * k.step + k.offset;
            int sum = 0;
            for (int j = 0; j < rows->count; j++)
                sum += rows->weights[j] * sample_load(format, at + j * rows->stride);
            pass->row[r].to[i] = (int16_t)((bytes == 2 ? filtered_column10(sum, rows->bits)
                                                       : filtered_column8(sum, rows->bits)) +
                                           128 * 128);
        }
    }
}

// --- a pass

// Sets where the sums of a block's samples go.
static inline void pass_quarters(struct column_pass *pass)
{
    const int bytes = sample_bytes_of(pass->format);
    uint8_t sample[4 * QUARTER];
    int n = 0;
    for (int r = 0; r < pass->rows; r++) {
        const int step = pass->row[r].of.step / bytes, offset = pass->row[r].of.offset / bytes;
        for (int k = 0; k < 4 / step; k++, n++) {
            pass->quarter[n].to = pass->row[r].to + k * QUARTER;
            pass->quarter[n].step = pass->unit / step;
            for (int i = 0; i < QUARTER; i++)
                sample[n * QUARTER + i] = (uint8_t)(offset + (k * QUARTER + i) * step);
        }
    }
    for (; n < 4; n++) {
        pass->quarter[n].to = pass->spare;
        pass->quarter[n].step = 0;
        for (int i = 0; i < QUARTER; i++)
            sample[n * QUARTER + i] = (uint8_t)(i * pass->unit);
    }
    if (pass->split)
        column_split_init(&pass->order, sample, bytes == 2, pass->unit == 3);
}

// Samples per unit of the plane.
static inline int plane_unit(enum pixel_format format, int plane)
{
    int step = 1;
    for (int c = 0; c < COMPONENTS_MAX; c++) {
        const struct component k = component_of(format, c);
        if (k.plane == plane && k.step / sample_bytes_of(format) > step)
            step = k.step / sample_bytes_of(format);
    }
    return step;
}

// Sets the pass's start and the limit of its blocks; `from`, `end` and `unit` are set.
static inline void pass_place(struct column_pass *pass, const struct image *src)
{
    const int bytes = pass->unit * sample_bytes_of(pass->format);
    const int units = (int)plane_row_bytes(src->format, pass->plane, src->width) / bytes;
    pass->from = pass->from / PIXELS * PIXELS; // rows start at a cache line
    pass->limit = units - block_units(pass->unit);
    pass->base = pass->limit < 0 ? 0 : pass->from < pass->limit ? pass->from : pass->limit;
    pass->split = pass->unit > 1;
}

static void pass_make(const struct column_pass *pass, const struct image *src, int y)
{
    const struct plane *p = &src->plane[pass->plane];
    const struct filter_axis *axis = pass->y;
    const struct filter_span span = axis->spans[y];
    const struct weighed_rows rows = {p->data + span.first * p->stride, p->stride, span.count,
                                      axis->bits, axis->weights + (ptrdiff_t)y * axis->stride};
    if (pass->limit < 0)
        short_rows_make(pass, &rows);
    else if (source_is_10bit(pass->format) && pass->split)
        blocks_make10(pass, &rows, true);
    else if (source_is_10bit(pass->format))
        blocks_make10(pass, &rows, false);
    else if (pass->unit == 3)
        blocks_make8(pass, &rows, true, true);
    else if (pass->split)
        blocks_make8(pass, &rows, true, false);
    else
        blocks_make8(pass, &rows, false, false);
}

#endif
