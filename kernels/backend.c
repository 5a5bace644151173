#include "kernels/backend.h"

bool job_suits(const struct job *job, const struct op *const ops[], int n)
{
    bool suits = job->n == n;
    for (int i = 0; suits && i < n; i++) {
        const struct op *op = job->results[i].op;
        suits = !op || (ops[i]->moves && op_replaces(op, ops[i]));
    }
    return suits;
}

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
