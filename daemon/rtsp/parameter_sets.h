// The newest parameter set of each kind and id of a stream, with start codes. Pure.
#ifndef FRAMED_DAEMON_RTSP_PARAMETER_SETS_H
#define FRAMED_DAEMON_RTSP_PARAMETER_SETS_H

#include <stddef.h>
#include <stdint.h>

enum { PARAMETER_SETS_BYTES = 16384, PARAMETER_SETS_MAX = 64 };

struct parameter_sets { // empty when zeroed
    uint8_t data[PARAMETER_SETS_BYTES];
    size_t bytes;
    int n;
    struct parameter_set {
        int rank; // lower ranks come first: a VPS, an SPS, a PPS
        uint32_t id;
        size_t bytes; // with its start code
    } set[PARAMETER_SETS_MAX];
};

// Adds a NAL unit, or replaces the one with its rank and id. Leaves it out if there is no room: the
// stream contains it anyway.
void parameter_sets_put(struct parameter_sets *, int rank, uint32_t id, const uint8_t *nal,
                        size_t bytes);

#endif
