// Reads the number that each picture of the benches' clips carries in black and white blocks, along
// the top and along the bottom. tests/bench/latency/clips draws them. Pure.
#ifndef FRAMED_TESTS_BENCH_LATENCY_PICTURE_NUMBER_H
#define FRAMED_TESTS_BENCH_LATENCY_PICTURE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

// A picture's bytes. One byte of each pixel is read: the luma or one of its colours.
struct picture_view {
    const uint8_t *data;
    size_t stride, step; // bytes from one row to the next, from one pixel to the next
    int width, height;
};

// Returns -1 if there is none, or if the two differ, as in a picture mixed from two.
int picture_number(const struct picture_view *);

#endif
