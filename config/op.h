// The kernel of an output: the parameters it runs with, and the formats that can carry its results.
#ifndef FRAMED_CONFIG_OP_H
#define FRAMED_CONFIG_OP_H

#include "config/config.h"

// Whether its kernel makes something of pictures by an op: copy and stats do not.
bool output_config_has_op(const struct output_config *);
// The parameters of that op; of the first region where it shows several.
void output_config_op(const struct output_config *, struct op_params *ret);
// Whether frames of `protocol` can hold the output's results.
bool output_config_fits(const struct output_config *, enum protocol);
// Whether it gets only some of its camera's pictures, by what is seen in them.
bool output_config_has_gate(const struct output_config *);
// Whether the camera's pictures are analysed (daemon/scene/scene.h).
bool camera_config_analyses(const struct camera_config *);

#endif
