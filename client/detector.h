// Detection where a model's outputs lie on a GPU.
#ifndef FRAMED_CLIENT_DETECTOR_H
#define FRAMED_CLIENT_DETECTOR_H

#include "kernels/detect.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gpu_detector;

// Makes ready for `pictures` a call on one device. -ENODEV, -EIO, -ENOMEM; `ret_why` says which.
int gpu_detector_open(struct gpu_detector **ret, const struct detect *, int pictures, int device,
                      const char **ret_why);
void gpu_detector_close(struct gpu_detector *);

// Detects in n pictures behind what the stream has to do, and waits until that is done. The
// results, one behind the other, are the detector's, until the next call. -EIO.
int gpu_detector_run(struct gpu_detector *, const struct detect *, const struct detect_input in[],
                     int n, void *stream, const struct detect_result **ret, const char **ret_why);

#ifdef __cplusplus
}
#endif
#endif
