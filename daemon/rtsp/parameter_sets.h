// The parameter sets of a stream so far, with start codes: one of each kind and number, the newest.
// Pure.
#ifndef FRAMED_DAEMON_RTSP_PARAMETER_SETS_H
#define FRAMED_DAEMON_RTSP_PARAMETER_SETS_H

#include <stddef.h>
#include <stdint.h>

enum { PARAMETER_SETS_BYTES = 16384, PARAMETER_SETS_MAX = 64 };

struct parameter_sets { // zeroed it is empty
    uint8_t data[PARAMETER_SETS_BYTES];
    size_t bytes;
    int n;
    struct parameter_set {
        int rank; // those of a lower rank stand first: a VPS, a SPS, a PPS
        uint32_t id;
        size_t bytes; // with its start code
    } set[PARAMETER_SETS_MAX];
};

// Takes a NAL unit in the place of that with its rank and number. What there is no room for is left
// out: the stream brings it.
void parameter_sets_put(struct parameter_sets *, int rank, uint32_t id, const uint8_t *nal,
                        size_t bytes);

#endif
