#include "daemon/input/orientation.h"

#include <errno.h>
#include <stdlib.h>

// Returns true if `part` is tiny next to `whole`: matrices are computed from angles and rounded.
static bool negligible(int64_t part, int64_t whole)
{
    return llabs(part) * 256 < llabs(whole);
}

int orientation_of(const int32_t matrix[9])
{
    // A pixel at (x, y) is shown at (a*x + b*y, c*x + d*y).
    const int64_t a = matrix[0], b = matrix[3], c = matrix[1], d = matrix[4];
    if (!a && !b && !c && !d) // from muxers that leave the field empty
        return ORIENTATION_UPRIGHT;
    if (negligible(b, a) && negligible(c, a) && negligible(b, d) && negligible(c, d))
        return a > 0   ? d > 0 ? ORIENTATION_UPRIGHT : ORIENTATION_MIRRORED | ORIENTATION_HALF
               : d > 0 ? ORIENTATION_MIRRORED
                       : ORIENTATION_HALF;
    if (negligible(a, b) && negligible(d, b) && negligible(a, c) && negligible(d, c))
        return b < 0   ? c > 0 ? ORIENTATION_QUARTER : ORIENTATION_MIRRORED | ORIENTATION_QUARTER
               : c > 0 ? ORIENTATION_MIRRORED | ORIENTATION_THREE_QUARTERS
                       : ORIENTATION_THREE_QUARTERS;
    return -EINVAL;
}

const char *orientation_name(enum orientation orientation)
{
    static const char *const names[] = {
        "upright",
        "turned by 90 degrees clockwise",
        "turned by 180 degrees clockwise",
        "turned by 270 degrees clockwise",
        "mirrored",
        "mirrored, then turned by 90 degrees clockwise",
        "mirrored, then turned by 180 degrees clockwise",
        "mirrored, then turned by 270 degrees clockwise",
    };
    return names[orientation];
}
