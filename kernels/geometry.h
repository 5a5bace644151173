// Source positions of a warp: matrices, window and position tables.
#ifndef FRAMED_KERNELS_GEOMETRY_H
#define FRAMED_KERNELS_GEOMETRY_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes the matrices, and a warp's size, points, window and tables. `points`: of the result's
// picture along x and y; NULL: all. Errors as op_init. On success the tables are one allocation at
// warp->colx, which the caller frees.
int geometry_init(struct warp *warp, double src_to_dst[6], double dst_to_src[6],
                  const struct warp_params *params, const struct image *src,
                  const struct warp_points points[2]);

// Size of that allocation. Its tables are in the order of struct warp.
size_t warp_tables_bytes(const struct warp *warp);

struct band warp_source_rows(const struct warp *, struct band out); // as op_source_rows

// Adds to the luma rows `rows` of the window [lo, hi) those whose chroma (at `at`) is read between
// source positions `first` and `last`.
struct band with_chroma_rows(struct band rows, struct position at, int32_t first, int32_t last,
                             int lo, int hi);

#ifdef __cplusplus
}
#endif
#endif
