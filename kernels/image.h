// A picture in memory as planes with byte strides. A view: an image owns nothing, and a crop is a
// view whose planes start elsewhere. Thread-safe: everything here is pure.
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

// How a picture is to be shown: mirrored left to right where it has the last of these, then turned
// clockwise by the quarters that the lower bits count.
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
    enum siting siting; // where a 4:2:0 chroma sample lies among its four luma samples
};

struct plane {
    uint8_t *data;
    ptrdiff_t stride; // bytes from one row to the next; may be negative or padded
};

struct image {
    enum pixel_format format;
    int width, height;  // pixels
    enum memory memory; // of all planes
    struct colour colour;
    enum orientation orientation;
    struct plane plane[PLANES_MAX];
};

// The planes that are laid out: those with a stride.
int image_planes(const struct image *);
// Whether all of them have rows of the same length and follow each other without a gap: the same
// rows of all are then one copy.
bool image_planes_are_alike(const struct image *);

// Whether there are pictures of this size.
bool size_is_valid(int width, int height);

// Lays the planes of `image` (its format, width and height are read) tightly one behind the other
// from `base`, which may be NULL to ask only for the size. Returns the bytes they take.
size_t image_lay_out(struct image *image, void *base);

// Fills what the stream left open: bt709 from 720 lines up, else bt601; limited; left.
struct colour colour_resolve(struct colour, int height);

#ifdef __cplusplus
}
#endif
#endif
