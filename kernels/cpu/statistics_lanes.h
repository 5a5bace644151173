// Statistics in wide registers: a template, see fixed_lanes.h.
//
// A picture is processed in blocks: rows within a row of cells, at most BLOCK_COLUMNS wide, which
// stay in the first cache during all steps: sums of columns and from these of cells, then the
// Laplacian, then the levels. 16-bit lanes hold the even or the odd pixels of a vector. The last
// vector of a row may overlap the one before it: repeated pixels are not counted again.
#ifndef FRAMED_KERNELS_CPU_STATISTICS_LANES_H
#define FRAMED_KERNELS_CPU_STATISTICS_LANES_H

#include <stdlib.h>

#include "kernels/cpu/fixed_lanes.h"
#include "kernels/statistics.h"

#if defined(__AVX512VBMI__)
// Histogram of level >> 2 and number of clipped levels, in AVX-512. Each bit of 512 pixels' levels
// is a plane of 512 bits. Three planes give eight sets of pixels, with bits 0 to 7; the
// intersection of two such sets is the pixels of one bin, which are counted: eight bins at a time
// over many planes, with counts in registers.

enum { LEVELS_PLANES = 6, LEVELS_GROUPS = 8, LEVELS_VECTORS = 8 * LEVELS_GROUPS };

struct levels {
    __m512i black, white;
    uint32_t above, whites;
    int filled; // vectors of 64 pixels in the planes
    uint64_t plane[LEVELS_PLANES][LEVELS_VECTORS];
    __m512i bin[STATISTICS_BINS]; // counts
};

static inline void levels_init(struct levels *l, int black, int white)
{
    memset(l, 0, sizeof *l);
    l->black = _mm512_set1_epi8((char)black);
    l->white = _mm512_set1_epi8((char)white);
}

// Sets of pixels whose bits a, b and c are 0 to 7.
static inline FRAMED_HD void sets_of(__m512i set[8], __m512i a, __m512i b, __m512i c)
{
    set[0] = _mm512_ternarylogic_epi64(a, b, c, 0x01);
    set[1] = _mm512_ternarylogic_epi64(a, b, c, 0x02);
    set[2] = _mm512_ternarylogic_epi64(a, b, c, 0x04);
    set[3] = _mm512_ternarylogic_epi64(a, b, c, 0x08);
    set[4] = _mm512_ternarylogic_epi64(a, b, c, 0x10);
    set[5] = _mm512_ternarylogic_epi64(a, b, c, 0x20);
    set[6] = _mm512_ternarylogic_epi64(a, b, c, 0x40);
    set[7] = _mm512_ternarylogic_epi64(a, b, c, 0x80);
}

static inline void planes_count(struct levels *l)
{
    __m512i high[LEVELS_GROUPS][8], low[LEVELS_GROUPS][8];
    for (int g = 0; g < LEVELS_GROUPS; g++) {
        __m512i p[LEVELS_PLANES];
        for (int i = 0; i < LEVELS_PLANES; i++)
            p[i] = _mm512_loadu_si512(l->plane[i] + 8 * g);
        sets_of(high[g], p[5], p[4], p[3]);
        sets_of(low[g], p[2], p[1], p[0]);
    }
    for (int h = 0; h < 8; h++) {
        __m512i bin[8];
        for (int i = 0; i < 8; i++)
            bin[i] = l->bin[8 * h + i];
        for (int g = 0; g < LEVELS_GROUPS; g++)
            for (int i = 0; i < 8; i++) {
                const __m512i both = _mm512_and_si512(high[g][h], low[g][i]);
                bin[i] = _mm512_add_epi64(bin[i], _mm512_popcnt_epi64(both));
            }
        for (int i = 0; i < 8; i++)
            l->bin[8 * h + i] = bin[i];
    }
    l->filled = 0;
}

static inline FRAMED_HD void levels_add(struct levels *l, vec_u8 v)
{
    const int n = l->filled++;
    for (int i = 0; i < 4; i++)
        l->plane[i][n] = _mm512_test_epi8_mask((mm)v, _mm512_set1_epi8((char)(4 << i)));
    l->plane[4][n] = _mm512_movepi8_mask((mm)(v + v)); // tests use one port alone, this another
    l->plane[5][n] = _mm512_movepi8_mask((mm)v);
    l->above += (uint32_t)__builtin_popcountll(_mm512_cmpgt_epu8_mask((mm)v, l->black));
    l->whites += (uint32_t)__builtin_popcountll(_mm512_cmpge_epu8_mask((mm)v, l->white));
    if (n == LEVELS_VECTORS - 1)
        planes_count(l);
}

// Bin 0 and `black` are remainders, so that any number of level 0 pixels may have been added.
static inline void levels_count(struct levels *l, struct luma_statistics *ret)
{
    for (int i = 0; i < LEVELS_PLANES; i++)
        memset(l->plane[i] + l->filled, 0, (size_t)(LEVELS_VECTORS - l->filled) * 8);
    planes_count(l);
    ret->histogram[0] = ret->pixels;
    for (int i = 1; i < STATISTICS_BINS; i++) {
        ret->histogram[i] = (uint32_t)_mm512_reduce_add_epi64(l->bin[i]);
        ret->histogram[0] -= ret->histogram[i];
    }
    ret->black = ret->pixels - l->above;
    ret->white = l->whites;
}

#else
// Histogram of level >> 2 and number of clipped levels, without AVX-512: two pixels at a time are
// counted in a table of pairs. Several tables alternate, because incrementing a count again is slow
// just after its last change.

enum {
    PAIRS_TABLES = 4,
    PAIRS_VECTORS = 0xffff / (LANES / PAIRS_TABLES), // before a count may overflow
    CLIPPED_VECTORS = 255,
};

struct levels {
    uint8_t black, white;
    int vectors, clipped_vectors;
    vec_u8 above, whites; // counts per column of a vector
    uint32_t above_sum, white_sum, bin[STATISTICS_BINS];
    // [right pixel's bin][left pixel's bin]. A gap follows each table, since CPUs first compare the
    // lower 12 bits of addresses alone and would confuse the tables' entries.
    uint16_t pairs[PAIRS_TABLES][(STATISTICS_BINS + 1) * STATISTICS_BINS];
};

static inline void levels_init(struct levels *l, int black, int white)
{
    memset(l, 0, sizeof *l);
    l->black = (uint8_t)black;
    l->white = (uint8_t)white;
}

static inline void clipped_fold(struct levels *l)
{
    for (int i = 0; i < PIXELS; i++) {
        l->above_sum += l->above[i];
        l->white_sum += l->whites[i];
    }
    l->above = l->whites = (vec_u8){0};
    l->clipped_vectors = 0;
}

static inline void pairs_fold(struct levels *l)
{
    for (int right = 0; right < STATISTICS_BINS; right++)
        for (int left = 0; left < STATISTICS_BINS; left++) {
            uint32_t pairs = 0;
            for (int t = 0; t < PAIRS_TABLES; t++)
                pairs += l->pairs[t][right * STATISTICS_BINS + left];
            l->bin[left] += pairs;
            l->bin[right] += pairs;
        }
    memset(l->pairs, 0, sizeof l->pairs);
    l->vectors = 0;
}

static inline FRAMED_HD void levels_add(struct levels *l, vec_u8 v)
{
    uint16_t at[LANES];
    store_s16((int16_t *)at, (vec_s16)(((vec_u16)v >> 2 & 0x3f) | ((vec_u16)v >> 4 & 0xfc0)));
    for (int i = 0; i < LANES; i++)
        l->pairs[i % PAIRS_TABLES][at[i]]++;
    l->above -= (vec_u8)(v > l->black);
    l->whites -= (vec_u8)(v >= l->white);
    if (++l->clipped_vectors == CLIPPED_VECTORS)
        clipped_fold(l);
    if (++l->vectors == PAIRS_VECTORS)
        pairs_fold(l);
}

// Bin 0 and `black` are remainders, so that any number of level 0 pixels may have been added.
static inline void levels_count(struct levels *l, struct luma_statistics *ret)
{
    clipped_fold(l);
    pairs_fold(l);
    ret->black = ret->pixels - l->above_sum;
    ret->white = l->white_sum;
    ret->histogram[0] = ret->pixels;
    for (int i = 1; i < STATISTICS_BINS; i++) {
        ret->histogram[i] = l->bin[i];
        ret->histogram[0] -= l->bin[i];
    }
}

#endif

// Limits for 16-bit lanes: of a column's sum, and of a row's Laplacian, at most 4 * 255 per pixel.
enum { BLOCK_ROWS = 16, BLOCK_COLUMNS = 32 * PIXELS };

struct block {
    int x, y, columns, rows;
    // Pixel x of the row above, of each row and of the row below, the outer ones if used; pixels to
    // the left and right are there, too, if the picture has them.
    const uint8_t *row[1 + BLOCK_ROWS + 1];
    ptrdiff_t ahead; // offset of the bytes to prefetch; 0: none
};

struct lane_sums {
    uint64_t squares, laplacian;
    vec_u8 min, max;
    struct levels levels;
};

// All ones except in the first `seen` bytes.
static inline FRAMED_HD vec_u8 bytes_from(int seen)
{
    vec_u8 index;
    for (int i = 0; i < PIXELS; i++)
        index[i] = (uint8_t)i;
    return (vec_u8)(index >= (uint8_t)seen);
}

static inline FRAMED_HD vec_s16 even_of(vec_u8 v)
{
    return (vec_s16)v & 255;
}

static inline FRAMED_HD vec_s16 odd_of(vec_u8 v)
{
    return (vec_s16)((vec_u16)v >> 8);
}

static inline uint64_t lanes_sum(vec_u32 v)
{
    uint64_t sum = 0;
    for (int i = 0; i < FLOATS; i++)
        sum += v[i];
    return sum;
}

// --- sums

// PIXELS columns from i on; the first `seen` were added before.
static inline FRAMED_HD void columns_add(const struct block *b, int i, int seen,
                                         struct lane_sums *sums, vec_s32 squares[2],
                                         uint16_t *column)
{
    vec_s16 even = all_s16(0), odd = all_s16(0);
    vec_s32 even_squares = squares[0], odd_squares = squares[1];
    vec_u8 min = sums->min, max = sums->max;
    for (int row = 1; row <= b->rows; row++) {
        const uint8_t *at = b->row[row] + i;
        __builtin_prefetch(at + b->ahead, 0, 2);
        const vec_u8 v = load_u8(at), fresh = seen ? v & bytes_from(seen) : v;
        even += even_of(v);
        odd += odd_of(v);
        even_squares = dot_pairs(even_squares, even_of(fresh), even_of(fresh));
        odd_squares = dot_pairs(odd_squares, odd_of(fresh), odd_of(fresh));
        min = min_u8(min, v);
        max = max_u8(max, v);
    }
    squares[0] = even_squares;
    squares[1] = odd_squares;
    sums->min = min;
    sums->max = max;
    store_zipped((int16_t *)column + i, even, odd);
}

// Sums n columns, four at a time; reads whole groups of 16.
static inline uint32_t columns_sum(const uint16_t *column, int n)
{
    static const uint16_t wanted[32] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                        -1, -1, -1, -1, -1, -1, -1, -1};
    uint32_t sum = 0;
    for (; n > 0; n -= 16, column += 16) { // columns whose sum is below 1 << 16
        uint64_t four, mask, fours = 0;
        for (int i = 0; i < 16; i += 4) {
            memcpy(&four, column + i, sizeof four);
            memcpy(&mask, wanted + 16 - (n < 16 ? n : 16) + i, sizeof mask);
            fours += four & mask;
        }
        sum += (uint32_t)(fours * UINT64_C(0x0001000100010001) >> 48);
    }
    return sum;
}

static inline void block_sums(const struct statistics *s, const struct block *b,
                              struct lane_sums *sums, uint32_t *cells)
{
    uint16_t column[BLOCK_COLUMNS + 16];
    vec_s32 squares[2] = {all_s32(0), all_s32(0)};
    const int32_t *edge = s->column_edges + 1;
    const int end = b->x + b->columns;
    int x = b->x;
    while (*edge <= x) {
        edge++;
        cells++;
    }
    for (int i = 0; i < b->columns; i += PIXELS) {
        const int last = b->columns - PIXELS, at = i < last ? i : last;
        if (at == i)
            columns_add(b, i, 0, sums, squares, column);
        else
            columns_add(b, at, i - at, sums, squares, column);
        // Finishes cells that end here or with the block: scalar steps beside the next columns'
        // wide ones.
        for (; x < end; edge++, cells++) {
            const int next = *edge < end ? *edge : end;
            if (next > b->x + at + PIXELS)
                break;
            *cells += columns_sum(column + x - b->x, next - x);
            x = next;
        }
    }
    sums->squares += lanes_sum((vec_u32)squares[0]) + lanes_sum((vec_u32)squares[1]);
}

// --- Laplacian

// Returns |4 c - left - right - up - down| of PIXELS pixels, the sum of two pixels in each lane,
// where the bytes of `fresh` are ones.
static inline FRAMED_HD vec_u16 laplacians(const uint8_t *up, const uint8_t *at,
                                           const uint8_t *down, vec_u8 fresh)
{
    const vec_u8 u = load_u8(up), c = load_u8(at), d = load_u8(down);
    const vec_u8 left = load_u8(at - 1), right = load_u8(at + 1);
    const vec_s16 even = weigh_bytes(c, 4, -1) - even_of(left) - even_of(u) - even_of(d);
    const vec_s16 odd = weigh_bytes(c, -1, 4) - odd_of(right) - odd_of(u) - odd_of(d);
    return (vec_u16)((abs_s16(even) & (vec_s16)fresh << 8 >> 8) +
                     (abs_s16(odd) & (vec_s16)fresh >> 8));
}

// For pixel i, whose left and right neighbours are both `side`.
static inline uint64_t laplacian_at_side(const uint8_t *const *row, int i, int side)
{
    return (uint64_t)abs(4 * row[0][i] - 2 * row[0][side] - row[-1][i] - row[1][i]);
}

static inline void block_laplacian(const struct statistics *s, const struct block *b,
                                   struct lane_sums *sums)
{
    const vec_u8 whole = bytes_from(0);
    const bool first = b->x == 0, last = b->x + b->columns == s->width;
    const int end = b->columns - last;
    vec_u32 block = {0};
    for (int row = 1; row <= b->rows; row++) {
        const uint8_t *const *at = &b->row[row];
        vec_u16 sum = {0};
        int i = first;
        for (; i + PIXELS <= end; i += PIXELS)
            sum += laplacians(at[-1] + i, at[0] + i, at[1] + i, whole);
        if (i < end) {
            const int k = end - PIXELS;
            sum += laplacians(at[-1] + k, at[0] + k, at[1] + k, bytes_from(i - k));
        }
        block += ((vec_u32)sum & 0xffff) + ((vec_u32)sum >> 16);
        if (first)
            sums->laplacian += laplacian_at_side(at, 0, 1);
        if (last)
            sums->laplacian += laplacian_at_side(at, end, end - 1);
    }
    sums->laplacian += lanes_sum(block);
}

// --- levels

static inline void block_levels(const struct block *b, struct levels *levels)
{
    for (int row = 1; row <= b->rows; row++) {
        int i = 0;
        for (; i + PIXELS <= b->columns; i += PIXELS)
            levels_add(levels, load_u8(b->row[row] + i));
        if (i < b->columns) { // repeated pixels become level 0, which is not counted
            const int k = b->columns - PIXELS;
            levels_add(levels, load_u8(b->row[row] + k) & bytes_from(i - k));
        }
    }
}

// --- blocks

// Converts n pixels from x on to bytes.
static inline void luma_convert(const struct statistics *s, const struct image *src, uint8_t *to,
                                int x, int n, int y)
{
    switch (pixel_format_read_as(s->format)) {
#define CONVERT(source)                                                                            \
    case source:                                                                                   \
        for (int i = 0; i < n; i++)                                                                \
            to[i] = (uint8_t)luma_at(src, source, s->gray, x + i, y);                              \
        break;
        FOR_EACH_SOURCE(CONVERT)
#undef CONVERT
    default:
        break;
    }
}

// Sets the rows of a block; luma that is not in bytes is converted.
static inline void block_take(struct block *b, const struct statistics *s, const struct image *src,
                              uint8_t (*converted)[BLOCK_COLUMNS + 2])
{
    const struct component luma = component_of(s->format, 0);
    const bool plain = luma.step == 1 && !source_is_rgb(s->format);
    const int around = s->params.all;
    const int left = b->x > 0, right = b->x + b->columns < s->width;
    for (int row = 1 - around; row <= b->rows + around; row++) {
        int y = b->y + row - 1;
        y = y < 0 ? s->height > 1 : y < s->height ? y : s->height > 1 ? s->height - 2 : 0;
        b->row[row] = plain ? component_row(src, luma, y) + b->x : converted[row] + left;
        if (!plain)
            luma_convert(s, src, converted[row], b->x - left, left + b->columns + right, y);
    }
    b->ahead = plain && b->y + 2 * b->rows <= s->height ? b->rows * src->plane[0].stride : 0;
}

static inline void lanes_statistics(const struct statistics *s, const struct image *src,
                                    struct luma_statistics *ret, uint32_t *cells)
{
    uint8_t converted[1 + BLOCK_ROWS + 1][BLOCK_COLUMNS + 2];
    struct lane_sums sums = {.min = bytes_from(0)};
    struct block b;
    const int across = (s->width + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
    if (s->width < PIXELS + 2) {
        statistics_reference(s, src, ret, cells);
        return;
    }
    memset(cells, 0, (size_t)s->columns * (size_t)s->rows * sizeof *cells);
    levels_init(&sums.levels, s->params.black, s->params.white);
    for (int row = 0; row < s->rows; row++) {
        const int y0 = s->row_edges[row], height = s->row_edges[row + 1] - y0;
        const int down = (height + BLOCK_ROWS - 1) / BLOCK_ROWS;
        for (int i = 0; i < down * across; i++) {
            const int k = i / across, l = i % across;
            b.y = y0 + k * height / down;
            b.rows = y0 + (k + 1) * height / down - b.y;
            b.x = l * s->width / across;
            b.columns = (l + 1) * s->width / across - b.x;
            block_take(&b, s, src, converted);
            block_sums(s, &b, &sums, cells + row * s->columns);
            if (s->params.all) {
                block_laplacian(s, &b, &sums);
                block_levels(&b, &sums.levels);
            }
        }
    }
    *ret = (struct luma_statistics){.squares = sums.squares,
                                    .laplacian = sums.laplacian,
                                    .pixels = (uint32_t)s->width * (uint32_t)s->height,
                                    .min = 255};
    for (int i = 0; i < s->columns * s->rows; i++)
        ret->sum += cells[i];
    for (int i = 0; i < PIXELS; i++) {
        ret->min = sums.min[i] < ret->min ? sums.min[i] : ret->min;
        ret->max = sums.max[i] > ret->max ? sums.max[i] : ret->max;
    }
    if (s->params.all)
        levels_count(&sums.levels, ret);
}

#endif
