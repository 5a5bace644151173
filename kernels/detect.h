// From the raw output of a detector network to boxes in pixels of the camera's picture: decode,
// filter, non-maximum suppression (NMS) and mapping. Pure; nothing here allocates.
//
// This is no picture op (kernels/ops.h): it reads tensors and writes a list, so bands of rows,
// pixel formats and plans mean nothing to it. It has the same parts all the same: init from a
// user's parameters, the need of memory, a reference whose bytes are the contract, and versions for
// wide registers (cpu/detect_versions.h) and CUDA (cuda/detect_cuda.h) that give the reference's
// bytes.
//
// Boxes are corners as edges, not centres of pixels: the left border of a picture is 0 and the
// right one its width. All arithmetic is binary32, rounded to nearest, without fused products,
// unless it says otherwise. The rules are those of the frameworks that the heads come from:
// Ultralytics (YOLO), YOLOX, torchvision.ops.nms, mmcv.ops, SAHI (merge). No code is theirs.
//   score      a candidate's is > its threshold (YOLOX: >=). A NaN is none. Without `multi_label`,
//              an anchor is a candidate by the first of its largest classes alone.
//   order      score descending, then anchor, then class ascending; -0 is 0. The best `candidates`
//              go on; where there are more, the result says DETECT_CUT.
//   boxes      whose corners, or angle, are not finite are dropped and counted, as is a class that
//              is no whole number below `classes`. Boxes of an unwanted size are dropped.
//   suppress   in that order: a box that is still there is kept, and those behind it go whose
//              overlap with it, a binary32 quotient, is greater than the binary64 `iou`.
//   result     kept boxes in that order, `max_det` at most, by D * (p - 1/2) + 1/2 on their
//              corners, in binary64: D is the picture's dst_to_src, which maps centres of pixels.
#ifndef FRAMED_KERNELS_DETECT_H
#define FRAMED_KERNELS_DETECT_H

#include "kernels/format.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DETECT_ANCHORS_MAX = 1 << 20,
    DETECT_CLASSES_MAX = 1 << 12,
    DETECT_EXTRA_MAX = 1 << 10, // columns
    DETECT_MAX_DET = 1 << 16,
    DETECT_STRIDES_MAX = 4,
    DETECT_CANDIDATES = 30000, // the default on a CPU, and the most there is room for on a GPU:
    DETECT_CANDIDATES_CUDA = 8192,
};

// What the tensors of one picture hold. N: anchors or queries; C: classes. Columns named "extra"
// follow in this order: keypoints, coefficients, and the angle where boxes are rotated.
enum detect_head {
    DETECT_YOLOV8,       // N x (cx cy w h, C scores, extra)
    DETECT_YOLOV5,       // N x (cx cy w h, objectness, C scores, extra); score: both's product
    DETECT_YOLOX,        // as yolov5, but >=. With strides: cells ((cx cy) + cell) * stride and
                         // exp(w h) * stride, row by row, the strides one behind the other
    DETECT_END2END,      // N x (x1 y1 x2 y2, score, class, extra); rotated: cx cy w h
    DETECT_DETR,         // N x (cx cy w h), and N x C scores; softmax: N x (C + 1)
    DETECT_EFFICIENTNMS, // N x (x1 y1 x2 y2), N scores, N classes, and 1 count
    DETECT_TFLITE,       // N x (y1 x1 y2 x2), N scores, N classes, and 1 count
    DETECT_HEADS
};

// The tensors of a head: the first alone, or the first two, but for the last two heads.
enum { DETECT_BOXES, DETECT_SCORES, DETECT_LABELS, DETECT_COUNT, DETECT_TENSORS };

// Two or more bytes are little endian and lie on multiples of their size. s8, u8: (element - zero)
// * scale.
enum detect_dtype {
    DETECT_F32,
    DETECT_F16,
    DETECT_BF16,
    DETECT_S8,
    DETECT_U8,
    DETECT_S32, // classes and counts alone, as the next
    DETECT_S64,
    DETECT_DTYPES
};

struct detect_format {
    enum detect_dtype dtype;
    float scale; // above 0; read of s8 and u8 alone
    int32_t zero;
};

// What scores go through first, in steps that are the same everywhere (kernels/detect_number.h).
enum detect_activation { DETECT_PLAIN, DETECT_SIGMOID, DETECT_SOFTMAX };

enum detect_suppression {
    DETECT_GREEDY, // a box that is gone suppresses none
    DETECT_FAST,   // it does: less boxes, by what other boxes have a part of
    DETECT_SOFT,   // score *= 1 - overlap, where that is greater than `iou`, of those not yet kept;
                   // the next is the largest left, and who is not above `soft_floor` goes
    DETECT_KEEP,   // none: of heads that are without duplicates
};

// All of it plain numbers, to be copied and sent; 0 stands for the default where it says so.
struct detect_params {
    uint32_t bytes; // sizeof(struct detect_params) of whoever fills it: members only follow
    enum detect_head head;
    int32_t width, height; // of the network's input, pixels
    int32_t anchors;       // N: rows of the output
    int32_t classes;       // C
    bool planes;           // the first four heads: the tensor is columns x N, not N x columns
    bool normalised;       // boxes are 0..1 of the input's size; not with rotated ones
    bool rotated;          // boxes have an angle: radians, from x to y
    int32_t strides[DETECT_STRIDES_MAX]; // of yolox; pixels, 0 behind the last
    int32_t keypoints, keypoint_columns; // each x, y and what else there is; 0, or 2 and more
    int32_t coefficients;                // columns that are passed on, as of masks
    enum detect_activation activation;   // softmax: of detr, whose last class is nothing
    struct detect_format format[DETECT_TENSORS];

    float conf;
    const float *class_conf;   // C thresholds in place of conf; NULL: none. Read by init alone
    const uint8_t *class_list; // C bytes: 0 leaves a class out; NULL: none. Read by init alone
    bool multi_label;          // every class above its threshold, not the best alone
    int32_t candidates;        // 0: DETECT_CANDIDATES; CUDA takes DETECT_CANDIDATES_CUDA at most
    float width_min, width_max, height_min,
        height_max; // source pixels, both ends included; max 0: any
    enum detect_suppression suppression;
    double iou;
    float soft_floor;
    bool agnostic;           // boxes of all classes suppress each other
    bool compat_ultralytics; // classes are held apart by 7680 * class on each coordinate, which
                             // costs precision, and not by their numbers
    int32_t offset;          // 0; 1: sides are x2 - x1 + 1, of old mmdetection models
    int32_t max_det;         // 0: 300

    bool clip;  // boxes, to [0, source width] x [0, source height]
    bool quads; // the result has the four corners of each box, too
};

// One picture. The caller's; everything it names lives until the result is there.
struct detect_input {
    const void *tensor[DETECT_TENSORS]; // host memory; with CUDA the device's
    double dst_to_src[6];               // network input to source pixel, centres at integers
    int32_t width, height;              // of the source, pixels; read where boxes are clipped
};

// 32 bytes.
struct detection {
    float x1, y1, x2, y2; // source pixels, edges; of turned boxes the hull
    float score;
    int32_t label;   // number of the class
    uint32_t anchor; // row of the output
    float angle;     // of rotated boxes in the source, radians in (-pi, pi], else 0
};

enum { DETECT_CUT = 1 }; // detect_result.flags: there were more candidates than go on

// One picture's: this, max_det detections of which `count` are written, with `quads` as many times
// 4 corners (x, y), and as many times the extra columns without the angle, keypoints in source
// pixels; all floats, and NaN in an extra column is the quiet one without payload.
struct detect_result {
    uint32_t count, flags;
    uint32_t candidates; // above their thresholds
    uint32_t dropped;    // boxes not finite, of those that went on, and classes that are none
};

// Made for one descriptor; never changes; plain bytes, which may be copied.
struct detect {
    struct detect_params params;                    // class_conf and class_list NULL
    int32_t columns;                                // of DETECT_BOXES
    int32_t anchor_step, column_step;               // elements of it
    int32_t score_tensor, score_column, score_step; // step: elements from anchor to anchor
    int32_t score_next;                             // elements from class to class
    int32_t scores; // of an anchor: classes, or one; softmax: one more than classes
    int32_t label_tensor, label_column, label_step; // tensor -1: the class is the score's column
    int32_t extra_column, extra;                    // without the angle
    bool objectness, limited;                       // limited: boxes have wanted sizes
    int32_t capacity;                               // candidates that there can be
    float overlap;                                  // quotients above it are above iou
    float conf_least;                               // of `conf`
    float conf[DETECT_CLASSES_MAX]; // scores above it are wanted, also of yolox; NaN: none is
};

// The usual parameters of a head: conf 0.25, iou 0.45 and greedy, or kept where the head has no
// duplicates, f32, sizes 0.
struct detect_params detect_defaults(enum detect_head head);

// 0 or -EINVAL: a size out of range, a parameter that the head does not have, a threshold that is
// no number. `ret_why`: what is wrong and what is allowed, for a user; NULL: not wanted.
int detect_init(struct detect *, const struct detect_params *, const char **ret_why);

size_t detect_dtype_bytes(enum detect_dtype); // of an element

// What a tensor of one picture holds, in bytes; 0: the head has no such tensor.
size_t detect_tensor_bytes(const struct detect *, int tensor);

// Of one picture's result, and of the memory that detecting needs beside it, on a CPU.
size_t detect_result_bytes(const struct detect *);
size_t detect_workspace_bytes(const struct detect *);

// Every version. `result`: detect_result_bytes; `workspace`: detect_workspace_bytes, whose content
// means nothing. Both on multiples of 64 bytes. Thread-safe where these differ.
typedef void detect_fn(const struct detect *, const struct detect_input *,
                       struct detect_result *result, void *workspace);

detect_fn detect_reference;

// Where the parts of a result lie.
static inline FRAMED_HD struct detection *detect_found(const struct detect_result *result)
{
    return (struct detection *)(result + 1);
}

static inline FRAMED_HD float *detect_quads(const struct detect *detect,
                                            const struct detect_result *result)
{
    return (float *)(detect_found(result) + detect->params.max_det);
}

static inline FRAMED_HD float *detect_extras(const struct detect *detect,
                                             const struct detect_result *result)
{
    return detect_quads(detect, result) + (detect->params.quads ? 8 * detect->params.max_det : 0);
}

// --- merge: lists of one picture's tiles to one list

enum detect_metric { DETECT_IOU, DETECT_IOS }; // shared area by the union's, by the smaller box's

// Greedy over boxes in source pixels: of equal scores the first of the list is better, and a box
// goes with the best of the kept ones that it overlaps by a quotient greater than the threshold.
struct detect_merge {
    enum detect_metric metric;
    bool absorb; // as SAHI's greedy NMM: a kept box becomes the hull of itself, as it was, and all
                 // that go with it
    bool agnostic;
    double threshold; // 0 to 1
    int32_t max_det;  // 0: all
};

size_t detect_merge_bytes(int n); // of the workspace, on a multiple of 8 bytes

// Writes to `to` (n, not `from`) what is left of `from`, and to `ret_source` (n; NULL: not wanted)
// which of `from` each is. Boxes that are not finite are dropped, and scores that are NaN. Returns
// how many there are; -EINVAL: a threshold out of range, or numbers below 0. Thread-safe.
int detect_merge(struct detection to[], int32_t ret_source[], const struct detection from[], int n,
                 const struct detect_merge *, void *workspace);

#ifdef __cplusplus
}
#endif
#endif
