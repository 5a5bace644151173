// The kernel of an output: the parameters it runs with, and the formats that can carry its results.
#ifndef FRAMED_CONFIG_OP_H
#define FRAMED_CONFIG_OP_H

#include "config/config.h"

// The parameters of the kernel that an output asks for, which is not copy; of its first region
// where it shows several.
void output_config_op(const struct output_config *, struct op_params *ret);
// Whether frames of `protocol` can hold the output's results.
bool output_config_fits(const struct output_config *, enum protocol);
// Whether it gets only some of its camera's pictures, by what is seen in them.
bool output_config_has_gate(const struct output_config *);

#endif
