// The elements of a tensor.
#ifndef FRAMED_KERNELS_ELEMENT_H
#define FRAMED_KERNELS_ELEMENT_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

size_t element_bytes(enum dtype);

// Fills warp->table for warp->dtype and warp->channels: (level * scale - mean) / std in double,
// then one rounding: to integers half up and saturated, to floats to nearest even. Then finds sums
// that give the same, for versions that would rather compute than look up. And sets what fill is.
void element_tables_init(struct warp *warp, const struct warp_params *params);

#ifdef __cplusplus
}
#endif
#endif
