// Analysis of the luma of a camera's pictures, three ops in sequence: statistics with sums of cells
// (kernels/statistics.h), then motion (kernels/motion.h) and a fingerprint (kernels/fingerprint.h)
// from those sums. Every version gives the same bytes.
//
// An analysis holds the tables for one geometry. An analyser, opened by a backend
// (kernels/backend.h), holds one camera's state: the background that motion is compared with.
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

// Made for one source geometry; never changes.
struct analysis {
    struct statistics statistics;
    struct motion motion;
    struct fingerprint_cells fingerprint;
};

// Result of one picture, in the analyser's memory: valid until its next picture.
struct analysis_result {
    struct luma_statistics luma;
    const uint8_t *grid; // means, statistics.grid_columns x statistics.grid_rows, row by row
    uint64_t fingerprint;
    const struct motion_boxes *motion;
};

// For pictures with the format, size and colour of `src`. Returns 0, or -EINVAL from one of the
// three inits. `ret_why` is set by motion_init alone: unchanged where statistics_init fails.
int analysis_init(struct analysis *, const struct analysis_params *, const struct image *src,
                  const char **ret_why);

#ifdef __cplusplus
}
#endif
#endif
