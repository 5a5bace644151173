// A picture in memory as planes with byte strides. A view: an image owns nothing, and a crop is a
// view whose planes start elsewhere. Thread-safe: everything here is pure.
#ifndef FRAMED_KERNELS_IMAGE_H
#define FRAMED_KERNELS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PLANES_MAX = 3,
    IMAGE_SIDE_MAX = 16384, // pixels; keeps every position within 32 bits at 1/65536 pixel
};

enum pixel_format {
    PIXEL_NONE,
    PIXEL_BGRA,
    PIXEL_RGBA,
    PIXEL_BGR24,
    PIXEL_RGB24,
    PIXEL_GBRP, // three planes in the order G, B, R
    PIXEL_NV12,
    PIXEL_YUV420P,
    PIXEL_P010,      // nv12 with 16-bit little-endian samples, the 10 bits at the top
    PIXEL_YUV420P10, // 16-bit little-endian samples, the 10 bits at the bottom
    PIXEL_YUV444P,
    PIXEL_YUV24,  // packed Y U V, 3 bytes a pixel
    PIXEL_TENSOR, // what `warp` writes; its element type and layout are the op's
    PIXEL_FORMATS
};

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

// The name that configuration, wire and log use ("nv12"); "none" outside the enumeration.
const char *pixel_format_name(enum pixel_format);

bool pixel_format_is_rgb(enum pixel_format); // bgra rgba bgr24 rgb24 gbrp
int pixel_format_bits(enum pixel_format);    // bits of a sample: 8 or 10
int pixel_format_planes(enum pixel_format);  // 1 to 3; 0 for PIXEL_NONE and PIXEL_TENSOR

// Bytes of one row of `plane`, and the number of its rows, for a picture of that many pixels.
// 4:2:0 rounds odd sizes up.
size_t plane_row_bytes(enum pixel_format, int plane, int width);
int plane_rows(enum pixel_format, int plane, int height);

// Lays the planes of `image` (its format, width and height are read) tightly one behind the other
// from `base`, which may be NULL to ask only for the size. Returns the bytes they take.
size_t image_lay_out(struct image *image, void *base);

// Fills what the stream left open: bt709 from 720 lines up, else bt601; limited; left.
struct colour colour_resolve(struct colour, int height);

#ifdef __cplusplus
}
#endif
#endif
