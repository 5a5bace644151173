// Parts of the reference that versions reuse where wide registers gain little.
#ifndef FRAMED_KERNELS_DETECT_REFERENCE_H
#define FRAMED_KERNELS_DETECT_REFERENCE_H

#include "kernels/detect_workspace.h"

// Writes the candidates of anchors [first, end) as keys, by anchor and class. Returns their number,
// and adds candidates of an invalid class to `dropped`.
int detect_candidates(const struct detect *, const struct detect_input *, uint32_t first,
                      uint32_t end, uint64_t *keys, uint32_t *dropped);

// Writes the places of kept boxes, and returns their number. Changes scores and labels.
int detect_suppress_softly(const struct detect *, const struct detect_boxes *, int n, int32_t *kept,
                           float *scores);

// Writes the result->count kept candidates of `keys` to the result.
void detect_write(const struct detect *, const struct detect_input *, struct detect_result *result,
                  const uint64_t *keys, const struct detect_workspace *);

#endif
