// A picture in memory, as planes with byte strides. An image owns nothing; a crop is a view with
// other plane starts. Thread-safe: everything here is pure.
#ifndef FRAMED_KERNELS_IMAGE_H
#define FRAMED_KERNELS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// --- formats: a row of the table says where a format's samples lie; everything else about the
// format follows from it. For a constant format these functions return constants, in C and in CUDA.

#ifdef __CUDACC__
#define FRAMED_HD __host__ __device__
#else
#define FRAMED_HD __attribute__((always_inline))
#endif

// Keeps a loop rolled on the device, on rare paths: unrolled it would take registers from the
// others.
#ifdef __CUDA_ARCH__
#define FRAMED_ROLLED _Pragma("unroll 1")
#else
#define FRAMED_ROLLED
#endif

enum { PLANES_MAX = 3, COMPONENTS_MAX = 3 };

enum pixel_format { // in the table's order
    PIXEL_NONE,
    PIXEL_BGRA,
    PIXEL_RGBA,
    PIXEL_BGR24,
    PIXEL_RGB24,
    PIXEL_GBRP,
    PIXEL_NV12,
    PIXEL_YUV420P,
    PIXEL_P010,
    PIXEL_YUV420P10,
    PIXEL_YUV444P,
    PIXEL_YUV422P,
    PIXEL_YUV422P10,
    PIXEL_YUV444P10,
    PIXEL_YUYV422,
    PIXEL_UYVY422,
    PIXEL_NV21,
    PIXEL_GRAY,
    PIXEL_YUV24,
    PIXEL_TENSOR, // result of `warp`; the op has its element type and layout
    PIXEL_FORMATS
};

// Sample x of a component lies `offset` + x * `step` bytes from the start of its row.
struct component {
    int plane, offset, step; // step 0: the format has no such component
};

enum format_use {
    FORMAT_SOURCE = 1, // every op reads it
    FORMAT_RESULT = 2, // the op `yuv` makes it
    FORMAT_RGB = 4,
};

struct pixel_layout {
    enum pixel_format format;
    const char *name; // in configuration, wire and log
    int uses;         // enum format_use
    int bits;         // of a sample; more than 8 bits are in 16-bit little-endian words
    int shift;        // unused bits of the word below the sample
    int sub_x, sub_y; // log2 of the pixel columns and rows per chroma sample
    struct component component[COMPONENTS_MAX]; // R, G and B, or Y, U and V
};

static inline FRAMED_HD struct pixel_layout pixel_layout_of(enum pixel_format format)
{
    enum { RGB = FORMAT_RGB | FORMAT_SOURCE, SOURCE = FORMAT_SOURCE, RESULT = FORMAT_RESULT };
    static const struct pixel_layout table[PIXEL_FORMATS] = {
        {PIXEL_NONE, "none", 0, 0, 0, 0, 0, {{0, 0, 0}}},
        {PIXEL_BGRA, "bgra", RGB, 8, 0, 0, 0, {{0, 2, 4}, {0, 1, 4}, {0, 0, 4}}},
        {PIXEL_RGBA, "rgba", RGB, 8, 0, 0, 0, {{0, 0, 4}, {0, 1, 4}, {0, 2, 4}}},
        {PIXEL_BGR24, "bgr24", RGB, 8, 0, 0, 0, {{0, 2, 3}, {0, 1, 3}, {0, 0, 3}}},
        {PIXEL_RGB24, "rgb24", RGB, 8, 0, 0, 0, {{0, 0, 3}, {0, 1, 3}, {0, 2, 3}}},
        {PIXEL_GBRP, "gbrp", RGB, 8, 0, 0, 0, {{2, 0, 1}, {0, 0, 1}, {1, 0, 1}}},
        {PIXEL_NV12, "nv12", SOURCE | RESULT, 8, 0, 1, 1, {{0, 0, 1}, {1, 0, 2}, {1, 1, 2}}},
        {PIXEL_YUV420P, "yuv420p", SOURCE | RESULT, 8, 0, 1, 1, {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}}},
        {PIXEL_P010, "p010", SOURCE, 10, 6, 1, 1, {{0, 0, 2}, {1, 0, 4}, {1, 2, 4}}},
        {PIXEL_YUV420P10, "yuv420p10", SOURCE, 10, 0, 1, 1, {{0, 0, 2}, {1, 0, 2}, {2, 0, 2}}},
        {PIXEL_YUV444P, "yuv444p", SOURCE | RESULT, 8, 0, 0, 0, {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}}},
        {PIXEL_YUV422P, "yuv422p", SOURCE, 8, 0, 1, 0, {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}}},
        {PIXEL_YUV422P10, "yuv422p10", SOURCE, 10, 0, 1, 0, {{0, 0, 2}, {1, 0, 2}, {2, 0, 2}}},
        {PIXEL_YUV444P10, "yuv444p10", SOURCE, 10, 0, 0, 0, {{0, 0, 2}, {1, 0, 2}, {2, 0, 2}}},
        {PIXEL_YUYV422, "yuyv422", SOURCE, 8, 0, 1, 0, {{0, 0, 2}, {0, 1, 4}, {0, 3, 4}}},
        {PIXEL_UYVY422, "uyvy422", SOURCE, 8, 0, 1, 0, {{0, 1, 2}, {0, 0, 4}, {0, 2, 4}}},
        {PIXEL_NV21, "nv21", SOURCE, 8, 0, 1, 1, {{0, 0, 1}, {1, 1, 2}, {1, 0, 2}}},
        {PIXEL_GRAY, "gray", SOURCE, 8, 0, 0, 0, {{0, 0, 1}}},
        {PIXEL_YUV24, "yuv24", RESULT, 8, 0, 0, 0, {{0, 0, 3}, {0, 1, 3}, {0, 2, 3}}},
        {PIXEL_TENSOR, "tensor", 0, 0, 0, 0, 0, {{0, 0, 0}}},
    };
    return table[format < PIXEL_FORMATS ? format : PIXEL_NONE];
}

static inline FRAMED_HD struct component component_of(enum pixel_format format, int c)
{
    return pixel_layout_of(format).component[c];
}

static inline FRAMED_HD bool source_is_rgb(enum pixel_format format)
{
    return pixel_layout_of(format).uses & FORMAT_RGB;
}

static inline FRAMED_HD bool source_has_chroma(enum pixel_format format)
{
    return !source_is_rgb(format) && component_of(format, 1).step > 0;
}

static inline FRAMED_HD bool source_is_10bit(enum pixel_format format)
{
    return pixel_layout_of(format).bits == 10;
}

static inline FRAMED_HD bool format_is_420(enum pixel_format format)
{
    return pixel_layout_of(format).sub_y > 0;
}

// 1 to 3; 0 for PIXEL_NONE, and for PIXEL_TENSOR, whose op has the number.
static inline FRAMED_HD int pixel_format_planes(enum pixel_format format)
{
    int planes = 0;
    for (int c = 0; c < COMPONENTS_MAX; c++) {
        const struct component k = component_of(format, c);
        if (k.step > 0 && k.plane >= planes)
            planes = k.plane + 1;
    }
    return planes;
}

// The name that configuration, wire and log use ("nv12"); "none" outside the enumeration.
const char *pixel_format_name(enum pixel_format);

// Bytes of a row of `plane` and its number of rows, for a picture of this many pixels: odd sizes
// are rounded up where chroma is subsampled.
size_t plane_row_bytes(enum pixel_format, int plane, int width);
int plane_rows(enum pixel_format, int plane, int height);

// The first source with the same layout of samples. It may differ in subsampling alone, which a
// reader of single samples ignores.
enum pixel_format pixel_format_read_as(enum pixel_format);

// Expands X(format) for each source that pixel_format_read_as returns, for code per format.
#define FOR_EACH_SOURCE(X) FOR_EACH_RGB_SOURCE(X) FOR_EACH_YUV_SOURCE(X)

#define FOR_EACH_RGB_SOURCE(X)                                                                     \
    X(PIXEL_BGRA)                                                                                  \
    X(PIXEL_RGBA)                                                                                  \
    X(PIXEL_BGR24)                                                                                 \
    X(PIXEL_RGB24)                                                                                 \
    X(PIXEL_GBRP)

#define FOR_EACH_YUV_SOURCE(X)                                                                     \
    X(PIXEL_NV12)                                                                                  \
    X(PIXEL_YUV420P)                                                                               \
    X(PIXEL_P010)                                                                                  \
    X(PIXEL_YUV420P10)                                                                             \
    X(PIXEL_YUYV422)                                                                               \
    X(PIXEL_UYVY422)                                                                               \
    X(PIXEL_NV21)                                                                                  \
    X(PIXEL_GRAY)

// --- images

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

// --- tiles: regions of a picture, in which a detector sees small objects in the camera's pixels

struct rect {
    int x, y, width, height; // source pixels
};

enum { TILES_MAX = 64 }; // of an area, including the whole area

struct tiling {
    int size;    // side of a tile, source pixels; 0: no tiles
    int overlap; // least overlap of neighbours, percent of the size: 0 to 99
    bool full;   // adds the whole area as an element
};

// Cuts `area` of a picture into an even grid of tiles: row by row, as few as the overlap allows, of
// equal size and with steps that differ by at most a pixel, so that the last tile is not thinner.
// An area narrower or lower than a tile makes the tiles so. With `full` the whole area comes last,
// unless it is the only tile. Returns the number of tiles; -EINVAL for a tiling without a size or
// an overlap without a step; -E2BIG for more than TILES_MAX.
int tiles_make(struct rect tiles[TILES_MAX], const struct tiling *, struct rect area);

// --- boxes, mapped from one picture to another by an affine matrix, in the daemon and its clients.
// Matrices map pixel centres, corners are edges: corner p maps to M * (p - 1/2) + 1/2. No other
// code may map boxes.

struct box_corner {
    double x, y;
};

// `m`: a 2x3 matrix, row by row.
static inline struct box_corner box_map_corner(const float m[6], double x, double y)
{
    x -= 0.5;
    y -= 0.5;
    const struct box_corner mapped = {(double)m[0] * x + (double)m[1] * y + (double)m[2] + 0.5,
                                      (double)m[3] * x + (double)m[4] * y + (double)m[5] + 0.5};
    return mapped;
}

// Maps the corners x1 y1 x2 y2 of a box; if the matrix rotates, to the hull of all four.
static inline void box_map(const float m[6], const float from[4], double to[4])
{
    const struct box_corner corner[] = {box_map_corner(m, (double)from[0], (double)from[1]),
                                        box_map_corner(m, (double)from[2], (double)from[1]),
                                        box_map_corner(m, (double)from[0], (double)from[3]),
                                        box_map_corner(m, (double)from[2], (double)from[3])};
    to[0] = to[2] = corner[0].x;
    to[1] = to[3] = corner[0].y;
    for (int i = 1; i < 4; i++) {
        to[0] = corner[i].x < to[0] ? corner[i].x : to[0];
        to[1] = corner[i].y < to[1] ? corner[i].y : to[1];
        to[2] = corner[i].x > to[2] ? corner[i].x : to[2];
        to[3] = corner[i].y > to[3] ? corner[i].y : to[3];
    }
}

// Clips to [0, end], the picture's width or height. NaN stays NaN.
static inline float box_clip(double value, double end)
{
    return (float)(value < 0 ? 0 : value > end ? end : value);
}

#ifdef __cplusplus
}
#endif
#endif
