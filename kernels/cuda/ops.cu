// The kernels of every op.
#include "kernels/cuda/cuda.h"

const struct cuda_op *const cuda_ops[OP_KINDS] = {&warp_cuda, &yuv_cuda};
