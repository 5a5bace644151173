// What a camera that was probed costs on this box, and whether the box has that to give.
#ifndef FRAMED_DAEMON_CLI_PROBE_COST_H
#define FRAMED_DAEMON_CLI_PROBE_COST_H

#include "daemon/cli/stream_probe.h"

struct probe_cost {
    double cores;                 // that decoding takes at the camera's rate
    struct memory_need memory;    // as `framed check` plans it
    double cores_all, cores_free; // of the box, or of the control group; free -1: not known
    long long memory_free;        // of the host, bytes; -1: not known
    size_t device_limit;          // of the GPU's memory; SIZE_MAX: there is none, or no limit
    bool fits;
    char why[128]; // it does not
};

// `lines`: a configuration with this camera alone. 0; -EINVAL: it has mistakes, which are printed
// to `errors`; -ENOMEM.
int probe_cost_measure(struct probe_cost *ret, const struct stream_probe *, const char *lines,
                       FILE *errors);

// Whether NVDEC decodes the camera.
bool probe_uses_nvdec(const struct stream_probe *);

#endif
