// An output's kernel: its parameters, and the formats that can carry its results.
#ifndef FRAMED_CONFIG_OP_H
#define FRAMED_CONFIG_OP_H

#include "config/config.h"

// Returns true if the kernel runs an op on pictures: copy and stats do not.
bool output_config_has_op(const struct output_config *);
// Sets *ret to the op's parameters; if the output shows several regions, with the first one.
void output_config_op(const struct output_config *, struct op_params *ret);
// Returns true if frames of `protocol` can hold the output's results.
bool output_config_fits(const struct output_config *, enum protocol);
// Returns true if the output gets only some of its camera's pictures, by their content.
bool output_config_has_gate(const struct output_config *);
// Returns true if the camera's pictures are analysed (daemon/scene/scene.h).
bool camera_config_analyses(const struct camera_config *);

#endif
