// Where warp reads: matrices, window and position tables.
#ifndef FRAMED_KERNELS_GEOMETRY_H
#define FRAMED_KERNELS_GEOMETRY_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes the matrices, and the size, the points, the window and the tables of a warp. `points`: of
// the result's picture along x and y; NULL: all. Errors as op_init. On success the tables are one
// allocation at warp->colx, which the caller frees.
int geometry_init(struct warp *warp, double src_to_dst[6], double dst_to_src[6],
                  const struct warp_params *params, const struct image *src,
                  const struct warp_points points[2]);

// The bytes of that allocation. The tables lie in it in the order of struct warp.
size_t warp_tables_bytes(const struct warp *warp);

struct band warp_source_rows(const struct warp *, struct band out); // as op_source_rows

// Widens the luma rows `rows` of the window [lo, hi) by those whose chroma, which lies at `at`, is
// read between source positions `first` and `last`.
struct band with_chroma_rows(struct band rows, struct position at, int32_t first, int32_t last,
                             int lo, int hi);

#ifdef __cplusplus
}
#endif
#endif
