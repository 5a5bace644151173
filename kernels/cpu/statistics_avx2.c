#include "kernels/cpu/statistics_lanes.h"
#include "kernels/cpu/versions.h"

void statistics_avx2(const struct statistics *statistics, const struct image *src,
                     struct luma_statistics *ret, uint32_t *cells)
{
    lanes_statistics(statistics, src, ret, cells);
}
