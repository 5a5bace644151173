// Plays a stream for some seconds and measures what it sends, and what decoding it takes here. One
// thread.
#ifndef FRAMED_DAEMON_CLI_STREAM_PROBE_H
#define FRAMED_DAEMON_CLI_STREAM_PROBE_H

#include "daemon/decode/decoder.h"
#include "daemon/device/devices.h"
#include "daemon/input/demux.h"

struct stream_probe {
    struct config config;
    struct camera_config camera; // with nothing but a URL
    struct devices *devices;
    struct device_lease lease;
    struct demux *demux;
    struct decoder *decoder;
    char why[DEMUX_WHY_MAX]; // it failed: one sentence without a password
    // Measured:
    int64_t begun_ns;          // CLOCK_MONOTONIC: connecting began
    int64_t first_ns, last_ns; // CLOCK_MONOTONIC: packets came
    int64_t shown_ns;          // CLOCK_MONOTONIC: the first picture was decoded; 0: none
    int64_t spent_ns;          // of the thread's CPU time, in the decoder
    int64_t bytes, packets, pictures, damaged;
    int64_t keyframes, key_pts_ns, key_distance_ns; // distance: the longest
    int64_t highest_pts_ns;
    int behind, b_frames; // packets in a row that are shown before an earlier one; the most of them
    bool clock;           // a sender report came
    int width, height;
    int rate_num, rate_den;
    double others; // processors that were busy with other programs; -1: not known
};

// For stream_probe_close in any case. A camera gets a password once. 0; negative errno, as
// demux_open and demux_read (-EACCES: the camera refused the password), and *why says it.
int stream_probe_run(struct stream_probe *, const char *url, double seconds);
void stream_probe_close(struct stream_probe *);

double stream_probe_seconds(const struct stream_probe *);   // that packets came
double stream_probe_rate(const struct stream_probe *);      // pictures a second
double stream_probe_decode_ms(const struct stream_probe *); // of one core, a picture

#endif
