// Detection with a model's outputs on a GPU.
#ifndef FRAMED_CLIENT_DETECTOR_H
#define FRAMED_CLIENT_DETECTOR_H

#include "kernels/detect.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gpu_detector;

// Prepares calls of up to `pictures` on a device. -ENODEV, -EIO, -ENOMEM; `ret_why`: the cause.
int gpu_detector_open(struct gpu_detector **ret, const struct detect *, int pictures, int device,
                      const char **ret_why);
void gpu_detector_close(struct gpu_detector *);

// Detects in n pictures after the stream's earlier work, and waits until it is done. The detector
// owns the results, one after the other, until its next call. -EIO.
int gpu_detector_run(struct gpu_detector *, const struct detect *, const struct detect_input in[],
                     int n, void *stream, const struct detect_result **ret, const char **ret_why);

#ifdef __cplusplus
}
#endif
#endif
