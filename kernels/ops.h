// The ops: what makes a result of a source picture. An op is made from a user's parameters for one
// geometry of sources, never changes (tables, coefficients), and every version of its kernel gives
// the same bytes.
//
// A new op is a file of its own with a row (struct op_type) at its end, a kind, its parameters and
// its numbers here, and a place in the three tables: op.c, cpu/versions.c and cuda/ops.cu.
#ifndef FRAMED_KERNELS_OPS_H
#define FRAMED_KERNELS_OPS_H

#include "kernels/fixed.h"
#include "kernels/lut.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- warp: affine map, samples by a filter, colour, normalisation to a tensor

// Letterbox keeps the aspect and puts the picture into the middle, to fractions of a pixel; crop is
// the same but covers the tensor. Those behind FIT_NONE round as their frameworks do (fit.c); with
// s the smaller of width / source width and height / source height, the picture fills whole pixels,
// of each side at least one:
//   ultralytics: round(side * s), halves to even, from round((tensor's side - side) / 2 - 0.1) on
//   rect: the same, but of the rest of each of the tensor's sides only what `stride` leaves of it
//   yolox: floor(side * s), at the top left
//   mmdet: floor(side * s + 1/2), at the top left
//   torchvision: the same as yolox, where s is the smaller of the tensor's short side / the
//   source's
//     and its long side / the source's, as floats; each of the tensor's sides is the picture's, up
//     to a multiple of `stride`
//   deepstream: one side whole, the other truncated, at the top left or (symmetric) in the middle,
//     floored; the crop begins at and has even numbers of pixels
//   opencv_crop: covers the tensor, as crop, but the scaled picture is cropped at whole pixels
enum fit {
    FIT_LETTERBOX,
    FIT_STRETCH,
    FIT_CROP,
    FIT_NONE,
    FIT_ULTRALYTICS,
    FIT_YOLOX,
    FIT_MMDET,
    FIT_RECT,
    FIT_TORCHVISION,
    FIT_DEEPSTREAM,
    FIT_DEEPSTREAM_SYMMETRIC,
    FIT_OPENCV_CROP,
    FITS
};
// Whether the tensor's size hangs on the source's: sources of different aspect give different ones.
static inline bool fit_follows_source(enum fit fit)
{
    return fit == FIT_RECT || fit == FIT_TORCHVISION;
}

enum flip { FLIP_NONE, FLIP_HORIZONTAL, FLIP_VERTICAL, FLIP_BOTH };
enum dtype { DTYPE_U8, DTYPE_S8, DTYPE_F16, DTYPE_F32 };
enum layout { LAYOUT_NCHW, LAYOUT_NHWC };
// The last three are of the op `yuv` alone: samples of a YUV source that keep their values.
enum order { ORDER_RGB, ORDER_BGR, ORDER_GRAY, ORDER_YUV, ORDER_Y, ORDER_UV };

// What of the source an output pixel is made of: the 2x2 samples around its position; those of the
// source pixel nearest to it, of two the one behind (nearest); or along each axis all samples that
// its own square covers, by how much of each (area), or those that lie nearer than its square's
// width, by how near (triangle; where it enlarges, nearer than one sample). The latter two want
// axes that do not mix.
enum filter { FILTER_BILINEAR, FILTER_AREA, FILTER_TRIANGLE, FILTER_NEAREST };

// Where the picture ends: an output pixel is picture and fill by how much of its 2x2 samples, or of
// its square, is picture; or it is picture if its position lies in the picture, whose last samples
// go on, and else fill.
enum edge { EDGE_BLEND, EDGE_REPEAT };

struct rect {
    int x, y, width, height; // source pixels
};

// How far from the source's first pixel an output pixel may lie, in source pixels: positions of
// 1/65536 pixel fit 32 bits, with room for the taps.
enum { WARP_REACH_MAX = (1 << 15) - 4 };

// Affine + filter + normalise. The source's crop (whole where its width is 0) is turned about its
// centre as the source's orientation says, then rotated, flipped and fitted to width x height;
// `affine` where has_affine stands for all of that.
struct warp_params {
    int width, height; // of the tensor, pixels; at most, where its size hangs on the source's
    enum fit fit;
    bool shrink_only; // s is at most 1, of letterbox, ultralytics, rect, yolox and mmdet
    int stride;       // of rect and torchvision; below 2: any size
    enum filter filter;
    enum edge edge;
    struct rect crop;
    double rotate; // degrees, clockwise as seen on the screen
    enum flip flip;
    bool has_affine;
    double affine[6]; // source to output, row major 2x3, integers at pixel centres
    uint8_t fill[3];  // in the tensor's channel order, before scale, mean and std
    bool
        fill_mean; // instead: the element 0, and where it is blended with picture the level nearest
    enum order order;
    enum layout layout;
    enum dtype dtype;
    // element = (level * scale - mean) / std, per channel of the tensor
    double scale, mean[3], std[3];
    struct colour colour; // how the source is to be read where not what the stream says
    // NULL, or what R, G and B go through as levels of 8 bits, ahead of the fill, of gray and of
    // the elements; of gray the level is then rounded before it is blended. The op takes a
    // reference.
    const struct lut *lut;
};

// A float element of its level: fma(level, a, b) + fma(level, c, d), each step rounded once. a and
// b are so short that the first has nothing to round; c and d are what they left of the slope and
// the origin.
struct level_sum {
    float a, b, c, d;
};

// What an output row reads where the axes do not mix: two source rows, which are the same where the
// second one weighs nothing, and the second one's weight. Weights and coverage as in fixed.h.
struct warp_row {
    uint16_t luma[2], luma_weight, coverage; // luma: also of RGB
    uint16_t chroma[2], chroma_weight, unused;
} __attribute__((aligned(16)));

// The same of an output column: its left tap as bytes from the row's start, and what the left and
// the right tap weigh, in the low and the high half. The right tap is the next sample, and one of
// those that count: where both are the last of these, the left tap is the one before it and weighs
// nothing. Where only one counts, the right tap weighs nothing.
struct warp_column {
    uint32_t offset, weights;
} __attribute__((aligned(8)));

// The samples of one plane's row or column that an output pixel is made of, where a filter weighs
// them.
struct filter_span {
    uint16_t first, count;
};

// The same of all output pixels along one axis of the source. The weights of pixel i lie at
// weights[i * stride]: `count` of them, which sum to 1 << bits, then zeroes.
struct filter_axis {
    struct filter_span *spans;
    int16_t *weights;
    int stride, bits; // stride: a multiple of 8
};

// What area and triangle read. Pixels with a coverage of 0 have empty spans.
struct filter_tables {
    size_t bytes; // of the one allocation at luma_x.spans, in which all tables lie
    // Along the source's x and y: of luma or RGB, and of chroma; and the share of an output pixel's
    // square that lies in the window, in units of WEIGHT_ONE.
    struct filter_axis luma_x, luma_y, chroma_x, chroma_y;
    uint16_t *coverage_x, *coverage_y;
    bool turned; // tables along x go by the output's y, those along y by the output's x
};

// Where along one axis of the result's picture a warp's pixels lie, in pixels of that picture:
// number i at i * step + first, but not beyond `last`. All of the picture: step 1 from 0 on.
struct warp_points {
    int step, last;
    double first;
};

static inline double warp_point_at(const struct warp_points *points, int i)
{
    const double at = i * points->step + points->first;
    return at < points->last ? at : points->last;
}

// Tables of columns are padded to whole groups of four, with copies of the last.
static inline FRAMED_HD int warp_padded_width(int width)
{
    return (width + 3) & ~3;
}

static inline FRAMED_HD bool filter_weighs(enum filter filter)
{
    return filter == FILTER_AREA || filter == FILTER_TRIANGLE;
}

// Made for one geometry of sources.
struct warp {
    int width, height, channels;
    enum pixel_format source; // pixel_format_read_as the source's: positions know what is halved
    enum dtype dtype;
    enum layout layout;
    enum order order;   // never ORDER_Y: that is gray whose coefficients change nothing
    int x0, y0, x1, y1; // the window of source pixels that count: x0 <= x < x1, y0 <= y < y1
    struct warp_points across, down; // along the result's x and y
    struct position luma, chroma_x, chroma_y;
    struct yuv_to_rgb rgb;    // for YUV sources
    int16_t gray[3];          // Q15 luma weights of R, G, B, for RGB; they sum to 32768
    const struct lut *lut;    // NULL: none; the warp's own reference
    uint8_t fill[3];          // that picture is blended with
    uint32_t fill_element[3]; // the bits of pixels that are nothing but fill, per channel
    enum filter filter;
    enum edge edge;
    struct filter_tables filtered; // where the filter is area or triangle
    // Position of output pixel (dx, dy) in 1/65536 source pixel: sx = colx[dx] + rowx[dy],
    // sy = coly[dx] + rowy[dy]. The axes mix where rowx or coly has more than zeros.
    int32_t *colx, *coly, *rowx, *rowy;
    // NULL where the axes mix or a filter weighs samples: by row; by column
    // for luma or RGB, for chroma, and the coverage.
    struct warp_row *rows;
    struct warp_column *luma_columns, *chroma_columns;
    uint16_t *coverage_columns;
    // Level to element, per channel: 256 entries of the element type.
    union {
        uint8_t u8[3][256];
        int8_t s8[3][256];
        uint16_t f16[3][256];
        float f32[3][256];
    } table;
    bool summed; // for every level the sums give the table's bits; never for integers
    struct level_sum sum[3];
};

// --- yuv: to a YUV format, of the source's size or of another geometry

// With a geometry the result is one of two. Where samples keep their values (a YUV source, and the
// same matrix and range), each plane of it is sampled as `warp` samples: luma from luma, chroma
// from chroma where the result's siting says that its samples lie, each rounded once; what the
// window does not cover is the fill colour in the result's YUV. The last column of chroma of an odd
// width lies no further right than the picture's last pixel, and the last row likewise. Else
// colours are converted: the result is what `warp` makes of the same geometry as u8, rgb, nhwc, and
// `yuv` without a geometry makes of that picture as rgb24. With a LUT colours are always converted,
// of a picture of the source's own geometry where none is given.
struct yuv_params {
    enum pixel_format format; // nv12, yuv420p, yuv444p or yuv24
    // Of the result; what is unspecified is the source's. The siting can be chosen only where
    // a geometry is given and samples keep their values.
    struct colour colour;
    bool resized; // has a geometry
    // What of it speaks of geometry, the filter and the fill, which is R, G and B here; and the
    // LUT, with a geometry or without. A width of 0: the least size that holds the crop, turned, at
    // its own scale (with `affine`: the crop's size); `fit` then means nothing.
    struct warp_params geometry;
};

enum { YUV_WARPS_MAX = 2 };

// Made for one geometry of sources. What stands above `warps` speaks of the picture that is
// converted, or whose samples are kept: the source, or with a geometry RGB24 as warps[0] makes it.
struct yuv {
    int width, height;
    enum pixel_format source;           // as in struct warp
    enum pixel_format format;           // of the result
    bool convert;                       // through RGB; else samples keep their values
    struct position chroma_x, chroma_y; // where the source's chroma is sampled
    struct yuv_to_rgb rgb;              // for YUV sources that are converted
    struct rgb_to_yuv yuv;
    // NULL without a geometry. Where samples keep their values, what makes the result's planes:
    // [0] all of 4:4:4; or [0] luma, [1] chroma.
    struct warp *warps;
    int n_warps;
};

// --- any op

enum op_kind { OP_WARP, OP_YUV, OP_KINDS };

struct op_params {
    enum op_kind kind;
    union {
        struct warp_params warp;
        struct yuv_params yuv;
    };
};

struct op {
    enum op_kind kind;
    uint64_t serial;  // names the op among all of this process; never 0
    struct image dst; // the result's format, size, resolved colour; planes laid out from NULL
    size_t dst_bytes; // of one result laid out tightly
    int batch;        // ops of one kind and batch may share a launch; below 0: it shares none
    bool moves;       // set by whoever makes a plan: its jobs may bring another op in this place
    // Where source pixels go in the result, and back: row major 2x3, integers at pixel centres. The
    // identity, unless the kind's init says otherwise.
    double src_to_dst[6], dst_to_src[6];
    union {
        struct warp warp;
        struct yuv yuv;
    };
};

// A run of output rows [y0, y1) and, by op_source_rows, the source rows that they read. Bands of
// 4:2:0 results start on even rows.
struct band {
    int y0, y1;
};

// Every version of every kernel. Writes exactly the rows of `band` of `dst`, all bytes of them that
// belong to the picture and no others; src and dst must be in memory that the version can touch.
// Thread-safe. `filled`: dst holds an earlier result of the same op, so that what is fill whatever
// the source shows may be left as it is.
typedef void op_fn(const struct image *dst, const struct image *src, const struct op *,
                   struct band band, bool filled);

// The row of an op.
struct op_type {
    const char *name; // of the kernel, in configuration and status

    // Fills all of `op` but kind and serial, which are set; errors as op_init.
    int (*init)(struct op *op, const struct op_params *params, const struct image *src);
    void (*finish)(struct op *op); // frees what init allocated; NULL: nothing
    // The source rows (luma) that a band of the result may touch; y0 == y1 where it reads none.
    struct band (*source_rows)(const struct op *op, struct band out);
    op_fn *reference; // its bytes are the contract
};

extern const struct op_type warp_type, yuv_type;
extern const struct op_type *const op_types[OP_KINDS]; // by enum op_kind

// Makes the op for sources shaped like `src` (format, size, colour and, by warp, orientation are
// read, planes are not).
// Returns 0; -EINVAL where the parameters make no op for it (a singular affine, a crop outside the
// picture, a stride that makes the tensor too large, axes that mix under area or triangle, a
// format that is no source or no result, a size that no picture has); -EDOM where the fit leaves no
// source pixel (deepstream reads them in pairs); -ERANGE where a position would lie beyond
// WARP_REACH_MAX; -ENOMEM. On error `op` needs no op_finish. Arithmetic: the pixel contract in
// kernels/fixed.h.
int op_init(struct op *op, const struct op_params *params, const struct image *src);
void op_finish(struct op *op); // accepts a zeroed op

// src_to_dst of a fit, without an op: what letterbox & co. mean. Row major 2x3.
int warp_src_to_dst(const struct warp_params *params, const struct image *src, double m[6]);

// The geometry of yuv_params, where it asks for the natural size with that, and the size of its
// result. 0 or -EINVAL.
int yuv_geometry(struct warp_params *ret, int *width, int *height, const struct yuv_params *params,
                 const struct image *src);

// Whether `op` was made for the same sources as `planned`, has the same LUT, and its results lie as
// those of that one.
bool op_replaces(const struct op *op, const struct op *planned);

// NULL: it has none.
const struct lut *op_lut(const struct op *op);

// Points `dst` at one tightly laid out result of `op` at `base` (host or device memory).
void op_lay_out(const struct op *op, struct image *dst, void *base);

// As op_type.source_rows and op_type.reference.
struct band op_source_rows(const struct op *op, struct band out);
void op_reference(const struct image *dst, const struct image *src, const struct op *op,
                  struct band band, bool filled);

#ifdef __cplusplus
}
#endif
#endif
