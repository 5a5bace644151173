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
