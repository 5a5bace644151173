// Parts of the reference that versions take as they are where wide registers gain little.
#ifndef FRAMED_KERNELS_DETECT_REFERENCE_H
#define FRAMED_KERNELS_DETECT_REFERENCE_H

#include "kernels/detect_workspace.h"

// The candidates of anchors [first, end), as keys, by anchor and class. Returns how many, and adds
// to `dropped` those whose class is none.
int detect_candidates(const struct detect *, const struct detect_input *, uint32_t first,
                      uint32_t end, uint64_t *keys, uint32_t *dropped);

// Of boxes in their order and scores: the places of what is kept, and how many. Scores and labels
// change.
int detect_suppress_softly(const struct detect *, const struct detect_boxes *, int n, int32_t *kept,
                           float *scores);

// Writes what is kept, result->count of the keys, to the result.
void detect_write(const struct detect *, const struct detect_input *, struct detect_result *result,
                  const uint64_t *keys, const struct detect_workspace *);

#endif
