// Fingerprint of a picture: 64 bits that stay almost the same if the picture is encoded again,
// scaled or made a little brighter, and change with its content. The difference of two pictures is
// the number of bits that differ. Pure; nothing here allocates.
//
// The perceptual hash by a discrete cosine transform (DCT), as in Zauner, "Implementation and
// Benchmarking of Perceptual Image Hash Functions", 2010, and in the library pHash:
//   luma    32 x 32 means over equal areas of the picture, rounded once
//   DCT     coefficients of frequencies 1 to 8 in x and y: two products with an 8 x 32 table,
//             B = (luma T^t + 256) >> 9     |B| <= 21,320, which fits 16 bits
//             C = T B                       |C| <= 1,825,333,120, which fits 32 bits
//           T is 4096 cos(pi (2 x + 1) v / 64), rounded; `>>` rounds down
//   bits    bit 8 u + v is C[u][v] > the median of all 64. The median is halfway between the middle
//           two, so the bit is set if and only if at least 32 coefficients are smaller.
// Frequency 0, the mean, is left out, and the rows of T sum to 0: adding the same number to all
// levels does not change the fingerprint.
//
// All arithmetic is on integers: C and CUDA give the same bits.
#ifndef FRAMED_KERNELS_FINGERPRINT_H
#define FRAMED_KERNELS_FINGERPRINT_H

#include "kernels/image.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FINGERPRINT_SIDE = 32,
    FINGERPRINT_LUMA = FINGERPRINT_SIDE * FINGERPRINT_SIDE,
    FINGERPRINT_FREQUENCIES = 8,
    FINGERPRINT_BITS = 64,
    FINGERPRINT_DROPPED = 9,     // low bits dropped from the first product
    FINGERPRINT_CELLS_MAX = 512, // along a side
};

// --- from sums of cells to the 32 x 32 luma

// Cells of an axis in each of the 32 rows or columns. Shares are in 1/32 cell.
struct fingerprint_axis {
    int32_t cells;
    int16_t first[FINGERPRINT_SIDE], last[FINGERPRINT_SIDE];
    uint8_t first_share[FINGERPRINT_SIDE]; // cells between first and last have a share of 32
    uint8_t last_share[FINGERPRINT_SIDE];  // 0 if the last is the first
    uint32_t pixels[FINGERPRINT_SIDE];     // of the picture, in 1/32 pixel
};

// Made for one grid of cells; never changes; plain bytes, which may be copied.
struct fingerprint_cells {
    struct fingerprint_axis x, y;
    uint64_t reciprocal[FINGERPRINT_LUMA]; // (2^64 - 1) / pixels of the area, rounded down
};

// Cell i of an axis has pixels edges[i] to edges[i + 1] - 1. There may be fewer than 32 cells along
// an axis, and their sizes may differ. Returns -EINVAL for no cell or more than
// FINGERPRINT_CELLS_MAX along an axis, edges that do not ascend from 0, or a side beyond
// IMAGE_SIDE_MAX.
int fingerprint_cells_init(struct fingerprint_cells *, int columns, const int32_t column_edges[],
                           int rows, const int32_t row_edges[]);

// Returns the rounded mean of an area from its sum and pixels, both in the same shares. The
// reciprocal is at most 1 too small, and so the quotient by it is, too.
static inline FRAMED_HD uint8_t fingerprint_mean(uint64_t sum, uint64_t pixels, uint64_t reciprocal)
{
    const uint64_t rounded = sum + pixels / 2;
    const uint64_t quotient = (uint64_t)((unsigned __int128)rounded * reciprocal >> 64);
    return (uint8_t)(quotient + (rounded - quotient * pixels >= pixels));
}

// `sums`: luma sum of each cell, columns x rows, row by row. Pixel (x, y) of `luma` is the mean of
// the area from x * columns / 32 to (x + 1) * columns / 32 cells; rows accordingly. A cell in two
// areas counts in each by its share, as if all its pixels were equal.
void fingerprint_luma(const struct fingerprint_cells *, const uint32_t *sums,
                      uint8_t luma[FINGERPRINT_LUMA]);

// --- from the luma to the bits

// T, row by row: FINGERPRINT_FREQUENCIES x FINGERPRINT_SIDE.
extern const int16_t fingerprint_table[FINGERPRINT_FREQUENCIES][FINGERPRINT_SIDE];

// Computes the fingerprints of n pictures. Thread-safe.
void fingerprint_reference(const uint8_t (*luma)[FINGERPRINT_LUMA], uint64_t *ret, int n);

#ifdef __cplusplus
}
#endif
#endif
