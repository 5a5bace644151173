// What is found in the luma of a camera's pictures, by three ops one after the other: statistics
// with sums of cells (kernels/statistics.h), and from these sums motion (kernels/motion.h) and a
// fingerprint (kernels/fingerprint.h). Every version gives the same bytes.
//
// An analysis holds the tables for one geometry; an analyser, which a backend opens
// (kernels/backend.h), holds one camera's state: the background that motion is told from.
#ifndef FRAMED_KERNELS_ANALYSIS_H
#define FRAMED_KERNELS_ANALYSIS_H

#include "kernels/fingerprint.h"
#include "kernels/motion.h"
#include "kernels/statistics.h"

#ifdef __cplusplus
extern "C" {
#endif

struct analysis_params {
    struct statistics_params statistics;
    struct motion_params motion;
};

// Made for one geometry of sources; never changes.
struct analysis {
    struct statistics statistics;
    struct motion motion;
    struct fingerprint_cells fingerprint;
};

// Of one picture. The analyser's memory: valid until its next picture.
struct analysis_result {
    struct luma_statistics luma;
    const uint8_t *grid; // means, statistics.grid_columns x statistics.grid_rows, row by row
    uint64_t fingerprint;
    const struct motion_boxes *motion;
};

// For pictures with format, size and colour of `src`. 0 or -EINVAL: as the three inits. `ret_why`:
// as motion_init's; what it was where statistics_init refuses.
int analysis_init(struct analysis *, const struct analysis_params *, const struct image *src,
                  const char **ret_why);

#ifdef __cplusplus
}
#endif
#endif
