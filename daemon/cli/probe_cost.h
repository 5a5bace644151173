// Measures the cost of a probed camera on this machine, and whether the machine has room for it.
#ifndef FRAMED_DAEMON_CLI_PROBE_COST_H
#define FRAMED_DAEMON_CLI_PROBE_COST_H

#include "daemon/cli/stream_probe.h"

struct probe_cost {
    double cores;                 // for decoding at the camera's rate
    struct memory_need memory;    // as `framed check` plans it
    double cores_all, cores_free; // of the machine, or of the control group; free -1: unknown
    long long memory_free;        // of the host, bytes; -1: unknown
    size_t device_limit;          // of the GPU's memory; SIZE_MAX: no GPU, or no limit
    bool fits;
    char why[128]; // the reason if it does not
};

// `lines`: a configuration with only this camera. Returns 0; -EINVAL: it has mistakes, printed to
// `errors`; -ENOMEM.
int probe_cost_measure(struct probe_cost *ret, const struct stream_probe *, const char *lines,
                       FILE *errors);

// Returns true if NVDEC decodes the camera.
bool probe_uses_nvdec(const struct stream_probe *);

#endif
