// Where warp reads: matrices, window and position tables.
#ifndef FRAMED_KERNELS_GEOMETRY_H
#define FRAMED_KERNELS_GEOMETRY_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// Sets the matrices of an op of kind OP_WARP, and the size, the window and the tables of its warp.
// Errors as op_init. On success the tables are one allocation at
// op->warp.colx, which the caller frees.
int geometry_init(struct op *op, const struct warp_params *params, const struct image *src);

// The bytes of that allocation. The tables lie in it in the order of struct warp.
size_t warp_tables_bytes(const struct warp *warp);

struct band warp_source_rows(const struct op *op, struct band out); // as op_source_rows

// Widens the luma rows `rows` of the window [lo, hi) by those whose chroma, which lies at `at`, is
// read between source positions `first` and `last`.
struct band with_chroma_rows(struct band rows, struct position at, int32_t first, int32_t last,
                             int lo, int hi);

#ifdef __cplusplus
}
#endif
#endif
