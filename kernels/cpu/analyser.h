// The cpu backend's analyser: works in the thread that calls it.
#ifndef FRAMED_KERNELS_CPU_ANALYSER_H
#define FRAMED_KERNELS_CPU_ANALYSER_H

#include "kernels/backend.h"

// As backend_driver's.
int cpu_analyser_open(struct backend *, struct analyser **ret, const struct analysis *analysis,
                      const struct image *src);
void cpu_analyser_close(struct analyser *);
int cpu_analyse(struct analyser *, const struct image *src, struct analysis_result *ret);

#endif
