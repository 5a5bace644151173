// The cpu backend's analyser: runs in the calling thread.
#ifndef FRAMED_KERNELS_CPU_ANALYSER_H
#define FRAMED_KERNELS_CPU_ANALYSER_H

#include "kernels/backend.h"

// The analyser calls of backend_driver.
int cpu_analyser_open(struct backend *, struct analyser **ret, const struct analysis *analysis,
                      const struct image *src);
void cpu_analyser_close(struct analyser *);
int cpu_analyse(struct analyser *, const struct image *src, struct analysis_result *ret);

#endif
