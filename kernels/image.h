// A picture in memory, as planes with byte strides. An image owns nothing; a crop is a view with
// other plane starts. Thread-safe: everything here is pure.
#ifndef FRAMED_KERNELS_IMAGE_H
#define FRAMED_KERNELS_IMAGE_H

#include "kernels/format.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { IMAGE_SIDE_MAX = 16384 }; // pixels; keeps every position within 32 bits at 1/65536 pixel

enum matrix { MATRIX_UNSPECIFIED, MATRIX_BT601, MATRIX_BT709, MATRIX_BT2020, MATRIX_BT601_8BIT };
enum range { RANGE_UNSPECIFIED, RANGE_LIMITED, RANGE_FULL };
enum siting { SITING_UNSPECIFIED, SITING_LEFT, SITING_CENTER, SITING_TOPLEFT };
enum memory { MEMORY_HOST, MEMORY_PINNED, MEMORY_CUDA }; // pinned: page-locked host memory

// How to show a picture: mirrored left to right if ORIENTATION_MIRRORED is set, then turned
// clockwise by the number of quarters in the lower bits.
enum orientation {
    ORIENTATION_UPRIGHT,
    ORIENTATION_QUARTER,
    ORIENTATION_HALF,
    ORIENTATION_THREE_QUARTERS,
    ORIENTATION_MIRRORED
};

struct colour {
    enum matrix matrix;
    enum range range;
    enum siting siting; // position of a 4:2:0 chroma sample among its four luma samples
};

struct plane {
    uint8_t *data;
    ptrdiff_t stride; // bytes from a row to the next; may be negative or padded
};

struct image {
    enum pixel_format format;
    int width, height;  // pixels
    enum memory memory; // of all planes
    struct colour colour;
    enum orientation orientation;
    struct plane plane[PLANES_MAX];
};

// Number of planes in use: those with a stride.
int image_planes(const struct image *);
// True if all planes have rows of equal length and follow each other without a gap: the same rows
// of all planes are one copy.
bool image_planes_are_alike(const struct image *);

// True if pictures may have this size.
bool size_is_valid(int width, int height);

// Places the planes of `image` (reads format, width and height) tightly one after the other from
// `base`; NULL computes the size alone. Returns the bytes used.
size_t image_lay_out(struct image *image, void *base);

// Fills unspecified members: bt709 from 720 lines up, else bt601; limited; left.
struct colour colour_resolve(struct colour, int height);

#ifdef __cplusplus
}
#endif
#endif
