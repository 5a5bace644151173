// The cells of a picture that lie in polygons. Pure.
#ifndef FRAMED_DAEMON_SCENE_MASK_H
#define FRAMED_DAEMON_SCENE_MASK_H

#include "config/types.h"
#include "kernels/statistics.h"

// Fills `mask`, columns x rows bytes, row by row: 0 if the middle of the cell is in one of the
// polygons, which may cross themselves (even-odd), else 1.
void mask_cells(const struct polygons *, const struct statistics *, uint8_t *mask);

#endif
