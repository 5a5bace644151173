#include "kernels/cpu/detect_lanes.h"
#include "kernels/cpu/versions.h"

void detect_neon(const struct detect *detect, const struct detect_input *in,
                 struct detect_result *result, void *workspace)
{
    lanes_detect(detect, in, result, workspace);
}
