// The access units of a clip, in memory, as an RTSP camera sends them. Read once, then readable
// from any thread.
#ifndef FRAMED_TESTS_BENCH_CLIP_UNITS_H
#define FRAMED_TESTS_BENCH_CLIP_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum clip_codec { CLIP_H264, CLIP_H265 };

struct nal {
    const uint8_t *data; // without start code
    size_t bytes;
};

struct access_unit {
    struct nal *nals;
    int n;
    int shown; // position in display order, from 0
    bool keyframe;
};

struct clip_units {
    enum clip_codec codec;
    struct access_unit *units; // n, in the order of decoding; the first one is a keyframe
    int n;
    int rate_num, rate_den;   // pictures a second
    struct nal vps, sps, pps; // the first ones; vps has no bytes in H.264
    uint8_t **memory;         // of each unit
};

// Reads H.264 or H.265 from a file, starting at its first keyframe. Returns 0, or a negative errno
// and a readable sentence in `why` (`size` bytes).
int clip_units_open(struct clip_units *, const char *path, char *why, size_t size);
void clip_units_close(struct clip_units *); // accepts a zeroed one
// Returns the first keyframe at or after unit i, wrapping around.
int clip_units_keyframe(const struct clip_units *, int i);
// Returns the duration of `pictures` pictures in ns.
int64_t clip_units_ns(const struct clip_units *, int64_t pictures);

#endif
