// Ops make results from a source picture. An op is made from a user's parameters for one source
// geometry and never changes (tables, coefficients). Every version of its kernel gives the same
// bytes.
//
// A new op is a file with its row (struct op_type) at the end; its kind, parameters and numbers are
// here, and it has an entry in three tables: ops.c, cpu/versions.c and cuda/plan.cu.
#ifndef FRAMED_KERNELS_OPS_H
#define FRAMED_KERNELS_OPS_H

#include "kernels/fixed.h"
#include "kernels/lut.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- warp: affine map, samples by a filter, colour, normalisation to a tensor

// Letterbox keeps the aspect and centres the picture, to fractions of a pixel; crop does too, but
// covers the tensor. Fits after FIT_NONE round like their frameworks (geometry.c). With s the
// smaller of width / source width and height / source height, the picture fills whole pixels, at
// least one per side:
//   ultralytics: round(side * s), halves to even, from round((tensor's side - side) / 2 - 0.1) on
//   rect: the same, but the tensor's padding along each axis is taken modulo `stride`
//   yolox: floor(side * s), at the top left
//   mmdet: floor(side * s + 1/2), at the top left
//   torchvision: like yolox, but s is the smaller of (tensor's / source's short side) and
//     (tensor's / source's long side), as floats; the tensor's sides are the picture's, rounded up
//     to a multiple of `stride`
//   deepstream: one side whole, the other truncated, at the top left or (symmetric) in the middle,
//     rounded down; the crop starts at even pixels and has even sides
//   opencv_crop: covers the tensor like crop, but crops the scaled picture at whole pixels
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
// True if the tensor's size depends on the source's aspect.
static inline bool fit_follows_source(enum fit fit)
{
    return fit == FIT_RECT || fit == FIT_TORCHVISION;
}

enum flip { FLIP_NONE, FLIP_HORIZONTAL, FLIP_VERTICAL, FLIP_BOTH };
enum dtype { DTYPE_U8, DTYPE_S8, DTYPE_F16, DTYPE_F32 };
enum layout { LAYOUT_NCHW, LAYOUT_NHWC };
// The last three are for the op `yuv` alone: samples of a YUV source keep their values.
enum order { ORDER_RGB, ORDER_BGR, ORDER_GRAY, ORDER_YUV, ORDER_Y, ORDER_UV };

// Samples of an output pixel. bilinear: 2x2 around its position. nearest: the nearest source pixel,
// the later one of two. area: along each axis all samples covered by the pixel's square, weighted
// by coverage. triangle: those nearer than the square's width (one sample if it enlarges), weighted
// by nearness. Area and triangle require axes that do not mix.
enum filter { FILTER_BILINEAR, FILTER_AREA, FILTER_TRIANGLE, FILTER_NEAREST };

// The picture's end. blend: an output pixel is blended with fill by the share of its 2x2 samples or
// square that is picture. repeat: it is picture, with the last samples repeated, if its position is
// in the picture, else fill.
enum edge { EDGE_BLEND, EDGE_REPEAT };

// Largest distance of an output pixel from the source's first pixel, in source pixels: positions of
// 1/65536 pixel fit 32 bits, with room for the taps.
enum { WARP_REACH_MAX = (1 << 15) - 4 };

// Affine + filter + normalise. The source's crop (all of it if its width is 0) is turned about its
// centre by the source's orientation, then rotated, flipped and fitted to width x height. `affine`
// replaces all of that if has_affine is set.
struct warp_params {
    int width, height; // of the tensor, pixels; its limits if the size depends on the source's
    enum fit fit;
    bool shrink_only; // s is at most 1, for letterbox, ultralytics, rect, yolox and mmdet
    int stride;       // for rect and torchvision; below 2: any size
    enum filter filter;
    enum edge edge;
    struct rect crop;
    double rotate; // degrees, clockwise on the screen
    enum flip flip;
    bool has_affine;
    double affine[6]; // source to output, row major 2x3, integers at pixel centres
    uint8_t fill[3];  // in the tensor's channel order, before scale, mean and std
    bool fill_mean;   // instead: element 0; for blending, the nearest level
    enum order order;
    enum layout layout;
    enum dtype dtype;
    // element = (level * scale - mean) / std, per channel of the tensor
    double scale, mean[3], std[3];
    struct colour colour; // overrides the stream's colour where specified
    // LUT for 8-bit levels R, G and B; NULL: none. Applied before fill, gray and elements; gray
    // levels are then rounded before they are blended. The op takes a reference.
    const struct lut *lut;
};

// A float element from its level: fma(level, a, b) + fma(level, c, d), each step rounded once. a
// and b are short enough for an exact first fma; c and d are the remainders of the slope and the
// origin.
struct level_sum {
    float a, b, c, d;
};

// Source rows of an output row if the axes do not mix: two rows, equal if the second has weight 0,
// and the second one's weight. Weights and coverage as in fixed.h.
struct warp_row {
    uint16_t luma[2], luma_weight, coverage; // luma: of RGB, too
    uint16_t chroma[2], chroma_weight, unused;
} __attribute__((aligned(16)));

// The same for an output column: the left tap in bytes from the row's start, and the weights of the
// left and the right tap, in the low and the high half. The right tap is the next sample and always
// valid: if both taps are the last valid sample, the left tap is the one before, with weight 0.
// With only one valid sample, the right tap has weight 0.
struct warp_column {
    uint32_t offset, weights;
} __attribute__((aligned(8)));

// Samples of a plane's row or column that a weighting filter uses for an output pixel.
struct filter_span {
    uint16_t first, count;
};

// Spans of all output pixels along one axis of the source. The weights of pixel i start at
// weights[i * stride]: `count` of them, which sum to 1 << bits, then zeroes.
struct filter_axis {
    struct filter_span *spans;
    int16_t *weights;
    int stride, bits; // stride: a multiple of 8
};

// Tables of area and triangle. Pixels with a coverage of 0 have empty spans.
struct filter_tables {
    size_t bytes; // of the one allocation at luma_x.spans that holds all tables
    // Along the source's x and y: of luma or RGB, and of chroma; and the share of an output pixel's
    // square in the window, in units of WEIGHT_ONE.
    struct filter_axis luma_x, luma_y, chroma_x, chroma_y;
    uint16_t *coverage_x, *coverage_y;
    bool turned; // tables along x are indexed by the output's y, those along y by its x
};

// Positions of a warp's pixels along one axis of the result's picture, in pixels of that picture:
// number i is at i * step + first, but not beyond `last`. All of the picture: step 1 from 0 on.
struct warp_points {
    int step, last;
    double first;
};

static inline double warp_point_at(const struct warp_points *points, int i)
{
    const double at = i * points->step + points->first;
    return at < points->last ? at : points->last;
}

// Tables of columns are padded to whole groups of four with copies of the last.
static inline FRAMED_HD int warp_padded_width(int width)
{
    return (width + 3) & ~3;
}

static inline FRAMED_HD bool filter_weighs(enum filter filter)
{
    return filter == FILTER_AREA || filter == FILTER_TRIANGLE;
}

// Made for one source geometry.
struct warp {
    int width, height, channels;
    enum pixel_format source; // pixel_format_read_as(source): positions have the subsampling
    enum dtype dtype;
    enum layout layout;
    enum order order;   // never ORDER_Y: that becomes gray, with coefficients that change nothing
    int x0, y0, x1, y1; // window of valid source pixels: x0 <= x < x1, y0 <= y < y1
    struct warp_points across, down; // along the result's x and y
    struct position luma, chroma_x, chroma_y;
    struct yuv_to_rgb rgb;    // for YUV sources
    int16_t gray[3];          // Q15 luma weights of R, G, B, for RGB; they sum to 32768
    const struct lut *lut;    // the warp's own reference; NULL: none
    uint8_t fill[3];          // blended with picture
    uint32_t fill_element[3]; // the bits of pixels without picture, per channel
    enum filter filter;
    enum edge edge;
    struct filter_tables filtered; // if the filter is area or triangle
    // Position of output pixel (dx, dy) in 1/65536 source pixel: sx = colx[dx] + rowx[dy], sy =
    // coly[dx] + rowy[dy]. The axes mix if rowx or coly has nonzero entries.
    int32_t *colx, *coly, *rowx, *rowy;
    // NULL if the axes mix or a filter weights samples. By row; by column for luma or RGB, for
    // chroma, and the coverage.
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
    bool summed; // the sums give the table's bits for every level; never for integers
    struct level_sum sum[3];
};

// --- yuv: to a YUV format, with the source's size or another geometry

// With a geometry there are two ways. If samples keep their values (a YUV source, same matrix and
// range), each plane is sampled like `warp` does: luma from luma, and chroma from chroma at the
// positions of the result's siting, each rounded once; outside the window is the fill colour in the
// result's YUV. At an odd width or height, the last chroma sample is not beyond the picture's last
// pixel. Otherwise colours are converted: `warp` makes u8, rgb, nhwc with the same geometry, and
// `yuv` without a geometry converts that as rgb24. With a LUT colours are always converted, in the
// source's own geometry if none is given.
struct yuv_params {
    enum pixel_format format; // nv12, yuv420p, yuv444p or yuv24
    // The result's; unspecified members are the source's. The siting may be set only with a
    // geometry and samples that keep their values.
    struct colour colour;
    bool resized; // has a geometry
    // Only its geometry, filter, fill (as R, G and B) and LUT are used; the LUT without a geometry,
    // too. Width 0: the smallest size that holds the turned crop at its own scale (with `affine`:
    // the crop's size); `fit` is then ignored.
    struct warp_params geometry;
};

enum { YUV_WARPS_MAX = 2 };

// Made for one source geometry. Members above `warps` describe the picture that is converted or
// whose samples are kept: the source, or, with a geometry, RGB24 made by warps[0].
struct yuv {
    int width, height;
    enum pixel_format source;           // as in struct warp
    enum pixel_format format;           // of the result
    bool convert;                       // through RGB; else samples keep their values
    struct position chroma_x, chroma_y; // where the source's chroma is sampled
    struct yuv_to_rgb rgb;              // for YUV sources that are converted
    struct rgb_to_yuv yuv;
    // NULL without a geometry. If samples keep their values, the warps that make the result's
    // planes: [0] all of 4:4:4; or [0] luma, [1] chroma.
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
    uint64_t serial;  // unique in this process; never 0
    struct image dst; // the result's format, size, resolved colour; planes laid out from NULL
    size_t dst_bytes; // of one tight result
    int batch;        // ops of one kind and batch may share a launch; below 0: never
    bool moves;       // set by the maker of a plan: its jobs may bring another op in this place
    // Map of source pixels to the result, and back: row major 2x3, integers at pixel centres. The
    // identity, unless the kind's init sets another.
    double src_to_dst[6], dst_to_src[6];
    union {
        struct warp warp;
        struct yuv yuv;
    };
};

// Output rows [y0, y1); source rows from op_source_rows. Bands of 4:2:0 results start on even rows.
struct band {
    int y0, y1;
};

// The type of every version of every kernel. Writes exactly the bytes of the picture in the rows of
// `band` of `dst`; the version must have access to the memory of src and dst. Thread-safe.
// `filled`: dst holds an earlier result of the same op, so bytes that are always fill need not be
// written.
typedef void op_fn(const struct image *dst, const struct image *src, const struct op *,
                   struct band band, bool filled);

struct op_type {
    const char *name; // the kernel's, in configuration and status

    // Fills all of `op` except kind and serial, which are set; errors as op_init.
    int (*init)(struct op *op, const struct op_params *params, const struct image *src);
    void (*finish)(struct op *op); // frees init's allocations; NULL: nothing
    // Returns the source rows (luma) that a band of the result may read; y0 == y1: none.
    struct band (*source_rows)(const struct op *op, struct band out);
    op_fn *reference; // its bytes are the contract
};

extern const struct op_type warp_type, yuv_type;
extern const struct op_type *const op_types[OP_KINDS]; // by enum op_kind

// Makes the op for sources with the format, size and colour of `src`, and for warp its orientation;
// planes are not read. Returns 0; -EINVAL if the parameters are invalid for it (singular affine,
// crop outside the picture, a stride that makes the tensor too large, axes that mix with area or
// triangle, a format that is not a source or result, an invalid size); -EDOM if the fit leaves no
// source pixel (deepstream reads pairs); -ERANGE for a position beyond WARP_REACH_MAX; -ENOMEM. On
// error `op` needs no op_finish. Arithmetic: the pixel contract in kernels/fixed.h.
int op_init(struct op *op, const struct op_params *params, const struct image *src);
void op_finish(struct op *op); // accepts a zeroed op

// src_to_dst of a fit, without an op. Row major 2x3.
int warp_src_to_dst(const struct warp_params *params, const struct image *src, double m[6]);

// Returns the geometry of yuv_params, with the natural size if it requests that, and the size of
// its result. 0 or -EINVAL.
int yuv_geometry(struct warp_params *ret, int *width, int *height, const struct yuv_params *params,
                 const struct image *src);

// True if `op` and `planned` have the same source format, LUT and layout of results.
bool op_replaces(const struct op *op, const struct op *planned);

// NULL: none.
const struct lut *op_lut(const struct op *op);

// Points `dst` at one tight result of `op` at `base` (host or device memory).
void op_lay_out(const struct op *op, struct image *dst, void *base);

// As op_type.source_rows and op_type.reference.
struct band op_source_rows(const struct op *op, struct band out);
void op_reference(const struct image *dst, const struct image *src, const struct op *op,
                  struct band band, bool filled);

#ifdef __cplusplus
}
#endif
#endif
