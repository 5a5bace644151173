// The access units of a clip, in memory, as an RTSP camera sends them. Read once; afterwards any
// thread reads.
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
    int shown; // its place in the order in which pictures are shown, from 0
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

// H.264 or H.265 of a file, from its first keyframe on. 0, or negative errno and a sentence for
// people in `why` (of `size` bytes).
int clip_units_open(struct clip_units *, const char *path, char *why, size_t size);
void clip_units_close(struct clip_units *); // accepts a zeroed one
// The first keyframe at or behind unit i, going round.
int clip_units_keyframe(const struct clip_units *, int i);
// ns that `pictures` of them last.
int64_t clip_units_ns(const struct clip_units *, int64_t pictures);

#endif
