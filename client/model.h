// Converts a program's model to the kernels' parameters.
#ifndef FRAMED_CLIENT_MODEL_H
#define FRAMED_CLIENT_MODEL_H

#include "client/framed.h"
#include "kernels/detect.h"

// Returns 0 or -EINVAL; `ret_why`: the mistake, and what is allowed.
int model_read(struct detect *, const struct framed_model *, const char **ret_why);

#endif
