// Tables of a warp with a filter that weights all samples under an output pixel: area, triangle.
#ifndef FRAMED_KERNELS_FILTER_H
#define FRAMED_KERNELS_FILTER_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes warp->filtered; all of `warp` except its tables must be set. `d`: dst_to_src. Returns 0;
// -EINVAL if the axes mix; -ENOMEM. On error there is nothing to finish.
int filter_init(struct warp *warp, const double d[6]);
// Bytes sufficient for the tables of any other window at no larger a scale: an output pixel may
// cover a few more samples there.
size_t filter_tables_room(const struct warp *);
void filter_finish(struct warp *warp); // accepts a warp without such tables

// Returns the source rows (luma) that rows [out.y0, out.y1) of the result read.
struct band filter_source_rows(const struct warp *warp, struct band out);

#ifdef __cplusplus
}
#endif
#endif
