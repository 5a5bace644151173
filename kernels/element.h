#ifndef FRAMED_KERNELS_ELEMENT_H
#define FRAMED_KERNELS_ELEMENT_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

size_t element_bytes(enum dtype);

// Fills warp->table for warp->dtype and warp->channels: (level * scale - mean) / std in double,
// then rounded once: integers half up and saturated, floats to nearest even. Then looks for sums
// with the same results, for versions that compute instead of looking up. Sets the fill, too.
void element_tables_init(struct warp *warp, const struct warp_params *params);

#ifdef __cplusplus
}
#endif
#endif
