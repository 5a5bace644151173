// Where warp reads: matrices, window and position tables.
#ifndef FRAMED_KERNELS_GEOMETRY_H
#define FRAMED_KERNELS_GEOMETRY_H

#include "kernels/ops.h"

// Sets the window, the matrices and the tables of `warp`, whose width and height are set already.
// Errors as op_init. On success the tables are one allocation at warp->colx.
int geometry_init(struct warp *warp, const struct warp_params *params, const struct image *src);

// The source rows that output rows `out` read: op_source_rows for each kernel.
struct band warp_source_rows(const struct warp *warp, struct band out);
struct band yuv_source_rows(const struct yuv *yuv, struct band out);

#endif
