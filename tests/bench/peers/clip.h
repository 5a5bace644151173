// A clip's pictures as separate frames of 1920x1080 in memory: real footage only.
#ifndef FRAMED_TESTS_BENCH_PEERS_CLIP_H
#define FRAMED_TESTS_BENCH_PEERS_CLIP_H

#include "kernels/image.h"

enum { CLIP_FRAMES = 64 }; // 200 MB and more: no frame is in a cache when its turn comes again

struct clip {
    struct image frame[CLIP_FRAMES]; // tight
};

// Decodes the first CLIP_FRAMES pictures to yuv420p of 1920x1080, scaled if their size differs; a
// shorter clip starts again. Returns 0 or a negative errno; call clip_close after either.
int clip_open(struct clip *, const char *path);
// Makes the same pictures in another format.
int clip_convert(struct clip *, const struct clip *from, enum pixel_format);
void clip_close(struct clip *); // accepts a zeroed one

#endif
