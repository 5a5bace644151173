#include "tests/bench/link.h"

#include "tests/bench/sample.h"

enum { ROUNDS = 15 };

static int time_copies(struct bench *bench, struct measure_copies copies, double *ret)
{
    double seconds[ROUNDS];
    int rc = bench->driver->copies(bench->device, &copies, ROUNDS, seconds);
    *ret = sample_median(seconds, ROUNDS);
    return rc;
}

int link_measure(struct bench *bench, const uint8_t *from, size_t up_bytes, uint8_t *to,
                 size_t down_bytes, int n, struct link_times *ret)
{
    struct measure_copies copies = {
        .from = from, .to = to, .up_bytes = up_bytes, .down_bytes = down_bytes};
    copies.up = n;
    int rc = time_copies(bench, copies, &ret->up);
    copies.down = n;
    if (rc == 0)
        rc = time_copies(bench, copies, &ret->both);
    copies.up = 0;
    if (rc == 0)
        rc = time_copies(bench, copies, &ret->down);
    return rc;
}

double link_slowest(const struct link_times *times)
{
    const double alone = times->up > times->down ? times->up : times->down;
    return times->both > alone ? times->both : alone;
}
