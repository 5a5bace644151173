#include "kernels/cpu/motion_lanes.h"
#include "kernels/cpu/versions.h"

void motion_neon(const struct motion *motion, struct motion_state *state, const uint32_t *sums,
                 struct motion_changes *changes, void *workspace)
{
    lanes_motion(motion, state, sums, changes, workspace);
}
