// What a program says of its model, in the words of the kernels.
#ifndef FRAMED_CLIENT_MODEL_H
#define FRAMED_CLIENT_MODEL_H

#include "client/framed.h"
#include "kernels/detect.h"

// 0 or -EINVAL; `ret_why`: what is wrong and what is allowed.
int model_read(struct detect *, const struct framed_model *, const char **ret_why);

#endif
