// The pictures a bench works on: a clip's, or generated ones that resemble a photograph (soft
// shades, edges, grain). Never constant. One thread.
#ifndef FRAMED_TESTS_BENCH_FOOTAGE_H
#define FRAMED_TESTS_BENCH_FOOTAGE_H

#include "kernels/image.h"

enum { FOOTAGE_MAX = 8, FOOTAGE_APART = 10 };

struct footage {
    // Tight, in separate memory. With a clip, [i] is its picture FOOTAGE_APART * i.
    struct image picture[FOOTAGE_MAX];
    int n;
    int width, height;  // of the clip's pictures
    char describe[200]; // for the headline
};

// clip NULL: generated pictures. Returns 0, or a negative errno and a sentence in `describe`.
int footage_open(struct footage *, const char *clip);
void footage_close(struct footage *);
// Fills `image` (its format, width and height are read, its planes are tight) with picture i % n,
// stretched to its size. Returns 0 or a negative errno.
int footage_fill(const struct footage *, int i, const struct image *image);

#endif
