// Statistics of a picture's luma: sum, squares, least and largest level, and the sums of cells that
// cover the picture (the light pass); with `all` also a histogram, the clipped pixels, and the
// Laplacian, which measures sharpness. One pass over the luma; pure; nothing here allocates.
//
// All results are integer sums, minima or maxima over pixels: each version (cpu/versions.h, CUDA)
// may take the pixels in its own order and gives the reference's bytes. Luma is a byte, as in
// kernels/fixed.h. In terms of OpenCV 4, for a CV_8U luma:
//   mean       sum / pixels                                           cv::mean
//   variance   squares / pixels - mean^2                              cv::meanStdDev, squared
//   histogram  pixels with level >> 2 == i                            cv::calcHist, 64 bins
//   laplacian  the sum of |4 c - left - right - up - down|, with the picture reflected at its
//              border without the border pixel (..2 1 0 1 2..; a side of 1 pixel: that pixel):
//              laplacian / pixels is the mean of                      |cv::Laplacian(luma, CV_16S)|
//   grid       the mean of each cell of the grid                      cv::resize, INTER_AREA
//
// Users see the grid. Each of its cells has split x split smaller cells, the input of motion
// detection. Cell i of n along a side of s pixels: floor(i s / n) <= pixel < floor((i + 1) s / n).
#ifndef FRAMED_KERNELS_STATISTICS_H
#define FRAMED_KERNELS_STATISTICS_H

#include "kernels/image.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    STATISTICS_COLUMNS = 32, // the default grid
    STATISTICS_ROWS = 18,
    STATISTICS_GRID_MAX = 64, // columns or rows
    STATISTICS_SPLIT = 5,
    STATISTICS_CELLS_MAX = STATISTICS_GRID_MAX * STATISTICS_SPLIT, // along a side
    STATISTICS_BINS = 64,
};

struct statistics_params {
    int columns, rows;    // of the grid, up to STATISTICS_GRID_MAX; 0: the default
    uint8_t black, white; // levels <= black and >= white count as clipped; black < white
    bool all;             // false: the light pass
};

// For one format and size of pictures. Plain numbers, to be copied and sent.
struct statistics {
    struct statistics_params params;
    enum pixel_format format;
    int width, height;           // pixels
    int grid_columns, grid_rows; // as requested, or less: at least 1 pixel each
    int split;         // STATISTICS_SPLIT, or less so that cells have 2 pixels each way; at least 1
    int columns, rows; // cells: the grid's by `split`
    int32_t column_edges[STATISTICS_CELLS_MAX + 1], row_edges[STATISTICS_CELLS_MAX + 1];
    int16_t gray[3]; // of RGB sources: kernels/fixed.h
};

struct luma_statistics {
    uint64_t sum, squares, laplacian;
    uint32_t pixels, black, white, histogram[STATISTICS_BINS];
    uint8_t min, max;
};

// For pictures with the format, size and colour of `src`, whose planes are not read. Returns 0, or
// -EINVAL: the parameters, the size, or a format that is not a source.
int statistics_init(struct statistics *, const struct statistics_params *, const struct image *src);

// Fills `ret` and `cells`, columns x rows luma sums, row by row. `src` has the format and size
// passed to init. The light pass sets laplacian, black, white and histogram to 0. Thread-safe.
typedef void statistics_fn(const struct statistics *, const struct image *src,
                           struct luma_statistics *ret, uint32_t *cells);

statistics_fn statistics_reference;

// Writes the rounded means of the grid's cells, grid_columns x grid_rows, row by row.
void statistics_grid(const struct statistics *, const uint32_t *cells, uint8_t *means);

// One of these means, for C and CUDA.
static inline FRAMED_HD uint8_t statistics_mean(const struct statistics *s, const uint32_t *cells,
                                                int row, int column)
{
    const int split = s->split, *xs = &s->column_edges[column * split],
              *ys = &s->row_edges[row * split];
    uint64_t sum = 0;
    for (int y = row * split; y < (row + 1) * split; y++)
        for (int x = column * split; x < (column + 1) * split; x++)
            sum += cells[y * s->columns + x];
    const uint64_t pixels = (uint64_t)(xs[split] - xs[0]) * (uint64_t)(ys[split] - ys[0]);
    return (uint8_t)((sum + pixels / 2) / pixels);
}

#ifdef __cplusplus
}
#endif
#endif
