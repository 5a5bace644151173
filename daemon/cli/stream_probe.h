// Plays a stream for some seconds and measures it, and the cost of decoding it here. One thread.
#ifndef FRAMED_DAEMON_CLI_STREAM_PROBE_H
#define FRAMED_DAEMON_CLI_STREAM_PROBE_H

#include "daemon/codec/decoder.h"
#include "daemon/device/devices.h"
#include "daemon/source/demux.h"

struct stream_probe {
    struct config config;
    struct camera_config camera; // with only a URL
    struct devices *devices;
    struct device_lease lease;
    struct demux *demux;
    struct decoder *decoder;
    char why[DEMUX_WHY_MAX]; // on failure: one sentence without a password
    // Measured:
    int64_t begun_ns;          // CLOCK_MONOTONIC: connecting began
    int64_t first_ns, last_ns; // CLOCK_MONOTONIC: first and last packet
    int64_t shown_ns;          // CLOCK_MONOTONIC: first decoded picture; 0: none
    int64_t spent_ns;          // the thread's CPU time in the decoder
    int64_t bytes, packets, pictures, damaged;
    int64_t keyframes, key_pts_ns, key_distance_ns; // distance: the longest
    int64_t highest_pts_ns;
    int behind, b_frames; // consecutive packets shown before an earlier one; the most of them
    bool clock;           // a sender report came
    int width, height;
    double others; // processors busy with other programs; -1: unknown
};

// Always to be followed by stream_probe_close. Sends a camera a password once. Returns 0 or a
// negative errno, as demux_open and demux_read (-EACCES: password refused), with a reason in `why`.
int stream_probe_run(struct stream_probe *, const char *url, double seconds);
void stream_probe_close(struct stream_probe *);

double stream_probe_seconds(const struct stream_probe *);   // from the first packet to the last
double stream_probe_rate(const struct stream_probe *);      // pictures per second
double stream_probe_decode_ms(const struct stream_probe *); // of one core, per picture

// --- cost
// Measures the cost of a probed camera on this machine, and whether the machine has room for it.

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
