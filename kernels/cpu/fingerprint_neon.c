#include "kernels/cpu/fingerprint_lanes.h"
#include "kernels/cpu/versions.h"

void fingerprint_neon(const uint8_t (*luma)[FINGERPRINT_LUMA], uint64_t *ret, int n)
{
    lanes_fingerprint(luma, ret, n);
}
