#include "kernels/analysis.h"

int analysis_init(struct analysis *analysis, const struct analysis_params *params,
                  const struct image *src, const char **ret_why)
{
    const struct statistics *cells = &analysis->statistics;
    int rc = statistics_init(&analysis->statistics, &params->statistics, src);
    if (rc == 0)
        rc = motion_init(&analysis->motion, &params->motion, &analysis->statistics, ret_why);
    if (rc == 0)
        rc = fingerprint_cells_init(&analysis->fingerprint, cells->columns, cells->column_edges,
                                    cells->rows, cells->row_edges);
    return rc;
}
