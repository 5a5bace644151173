// Decodes the raw output of a detector network to boxes in pixels of the camera's picture: decode,
// filter, non-maximum suppression (NMS) and mapping. Pure; nothing here allocates.
//
// Detection is not a picture op (kernels/ops.h): it reads tensors and writes a list, without bands,
// pixel formats or plans. It has the same parts: init from a user's parameters, memory sizes, a
// reference whose bytes are the contract, and versions for wide registers (cpu/versions.h) and
// CUDA (cuda/launch.h) that give the reference's bytes.
//
// Box corners are edges, not pixel centres: the left border of a picture is 0 and the right one its
// width. All arithmetic is binary32, rounded to nearest, without fused products, unless stated
// otherwise. The rules follow the frameworks that the heads come from: Ultralytics (YOLO), YOLOX,
// torchvision.ops.nms, mmcv.ops, SAHI (merge). No code is theirs.
//   score      must be > the threshold (YOLOX: >=). NaN never is. Without `multi_label`, an anchor
//              is a candidate for its largest score alone, the first class on a tie.
//   order      score descending, then anchor, then class ascending; -0 equals 0. Only the best
//              `candidates` remain; DETECT_CUT is set if there were more.
//   boxes      with corners or an angle that are not finite are dropped and counted, as are classes
//              that are not whole numbers below `classes`. Size limits drop boxes, too.
//   suppress   in that order: each remaining box is kept and removes later boxes whose overlap with
//              it, a binary32 quotient, is greater than the binary64 `iou`.
//   result     kept boxes in that order, at most `max_det`, with corners mapped in binary64 by
//              D * (p - 1/2) + 1/2: D is the picture's dst_to_src, which maps pixel centres.
#ifndef FRAMED_KERNELS_DETECT_H
#define FRAMED_KERNELS_DETECT_H

#include "kernels/image.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DETECT_ANCHORS_MAX = 1 << 20,
    DETECT_CLASSES_MAX = 1 << 12,
    DETECT_EXTRA_MAX = 1 << 10, // columns
    DETECT_MAX_DET = 1 << 16,
    DETECT_STRIDES_MAX = 4,
    DETECT_CANDIDATES = 30000,     // default on a CPU
    DETECT_CANDIDATES_CUDA = 8192, // most on a GPU
};

// Contents of one picture's tensors. N: anchors or queries; C: classes. "extra" columns, in this
// order: keypoints, coefficients, and the angle of rotated boxes.
enum detect_head {
    DETECT_YOLOV8, // N x (cx cy w h, C scores, extra)
    DETECT_YOLOV5, // N x (cx cy w h, objectness, C scores, extra); score: both multiplied
    DETECT_YOLOX, // as yolov5, but >=. With strides: cells ((cx cy) + cell) * stride and exp(w h) *
                  // stride, row by row, one stride after the other
    DETECT_END2END,      // N x (x1 y1 x2 y2, score, class, extra); rotated: cx cy w h
    DETECT_DETR,         // N x (cx cy w h), and N x C scores; softmax: N x (C + 1)
    DETECT_EFFICIENTNMS, // N x (x1 y1 x2 y2), N scores, N classes, and 1 count
    DETECT_TFLITE,       // N x (y1 x1 y2 x2), N scores, N classes, and 1 count
    DETECT_HEADS
};

// A head has the first tensor alone or the first two; the last two heads have all.
enum { DETECT_BOXES, DETECT_SCORES, DETECT_LABELS, DETECT_COUNT, DETECT_TENSORS };

// Elements of two or more bytes are little endian and aligned to their size. s8, u8: (element -
// zero) * scale.
enum detect_dtype {
    DETECT_F32,
    DETECT_F16,
    DETECT_BF16,
    DETECT_S8,
    DETECT_U8,
    DETECT_S32, // this and the next: for classes and counts alone
    DETECT_S64,
    DETECT_DTYPES
};

struct detect_format {
    enum detect_dtype dtype;
    float scale; // above 0; used for s8 and u8 alone
    int32_t zero;
};

// Applied to scores first, in steps with the same bits everywhere (kernels/detect_number.h).
enum detect_activation { DETECT_PLAIN, DETECT_SIGMOID, DETECT_SOFTMAX };

enum detect_suppression {
    DETECT_GREEDY, // a suppressed box suppresses none
    DETECT_FAST,   // a suppressed box still suppresses others: fewer boxes remain
    DETECT_SOFT, // keeps the largest remaining score; multiplies those overlapping it by more than
                 // `iou` by (1 - overlap), and drops them at `soft_floor` or below
    DETECT_KEEP, // no suppression: for heads without duplicates
};

// Plain numbers, to be copied and sent; 0 means the default where noted.
struct detect_params {
    uint32_t bytes; // sizeof(struct detect_params) of the caller: members are only appended
    enum detect_head head;
    int32_t width, height; // of the network's input, pixels
    int32_t anchors;       // N: rows of the output
    int32_t classes;       // C
    bool planes;           // the first four heads: the tensor is columns x N, not N x columns
    bool normalised;       // boxes are 0..1 of the input's size; not with rotated ones
    bool rotated;          // boxes have an angle: radians, from x to y
    int32_t strides[DETECT_STRIDES_MAX]; // of yolox; pixels, 0 after the last
    int32_t keypoints, keypoint_columns; // columns of each: x, y and others; 0, or 2 and more
    int32_t coefficients;                // columns passed through, such as mask coefficients
    enum detect_activation activation;   // softmax: for detr, whose last class means "nothing"
    struct detect_format format[DETECT_TENSORS];

    float conf;
    const float *class_conf;   // C thresholds that replace conf; NULL: none. Read by init alone
    const uint8_t *class_list; // C bytes: 0 excludes a class; NULL: none. Read by init alone
    bool multi_label;          // every class above its threshold, not the best alone
    int32_t candidates;        // 0: DETECT_CANDIDATES; CUDA accepts at most DETECT_CANDIDATES_CUDA
    float width_min, width_max, height_min,
        height_max; // source pixels, inclusive; max 0: any
    enum detect_suppression suppression;
    double iou;
    float soft_floor;
    bool agnostic;           // boxes of all classes suppress each other
    bool compat_ultralytics; // separates classes by adding 7680 * class to coordinates, which costs
                             // precision, instead of comparing their numbers
    int32_t offset;          // 0; 1: sides are x2 - x1 + 1, for old mmdetection models
    int32_t max_det;         // 0: 300

    bool clip;  // clips boxes to [0, source width] x [0, source height]
    bool quads; // adds the four corners of each box to the result
};

// One picture. The caller owns it and keeps everything it points to until the result is there.
struct detect_input {
    const void *tensor[DETECT_TENSORS]; // host memory; device memory with CUDA
    double dst_to_src[6];               // network input to source pixel, centres at integers
    int32_t width, height;              // of the source, pixels; used if boxes are clipped
};

// 32 bytes.
struct detection {
    float x1, y1, x2, y2; // source pixels, edges; of turned boxes the hull
    float score;
    int32_t label;   // number of the class
    uint32_t anchor; // row of the output
    float angle;     // of rotated boxes in the source, radians in (-pi, pi]; else 0
};

enum { DETECT_CUT = 1 }; // detect_result.flags: candidates were cut off

// One picture's result: this header, max_det detections (`count` are written); with `quads`,
// max_det times 4 corners (x, y); then max_det times the extra columns without the angle, keypoints
// in source pixels. All are floats; NaN in an extra column is quiet and without payload.
struct detect_result {
    uint32_t count, flags;
    uint32_t candidates; // above their thresholds
    uint32_t dropped;    // remaining boxes that are not finite, and invalid classes
};

// Made for one descriptor; never changes; plain bytes, which may be copied.
struct detect {
    struct detect_params params;                    // class_conf and class_list NULL
    int32_t columns;                                // of DETECT_BOXES
    int32_t anchor_step, column_step;               // in elements of DETECT_BOXES
    int32_t score_tensor, score_column, score_step; // step: elements from anchor to anchor
    int32_t score_next;                             // elements from class to class
    int32_t scores; // per anchor: classes, or one; softmax: classes + 1
    int32_t label_tensor, label_column, label_step; // tensor -1: the score's column is the class
    int32_t extra_column, extra;                    // without the angle
    bool objectness, limited;                       // limited: boxes have size limits
    int32_t capacity;                               // most candidates possible
    float overlap;                                  // binary32 quotients above it are above iou
    float conf_least;                               // the least of `conf`
    float conf[DETECT_CLASSES_MAX]; // score > conf is a candidate, for yolox too; NaN: none is
};

// The usual parameters of a head: conf 0.25, iou 0.45, greedy (or DETECT_KEEP for a head without
// duplicates), f32, sizes 0.
struct detect_params detect_defaults(enum detect_head head);

// Returns 0 or -EINVAL: a size out of range, a parameter that the head does not have, or a
// threshold that is not a number. `ret_why` (or NULL): the mistake and the allowed values, for a
// user.
int detect_init(struct detect *, const struct detect_params *, const char **ret_why);

size_t detect_dtype_bytes(enum detect_dtype); // of an element

// Bytes of a tensor of one picture; 0: the head has no such tensor.
size_t detect_tensor_bytes(const struct detect *, int tensor);

// Bytes of one picture's result, and of the additional memory for detection on a CPU.
size_t detect_result_bytes(const struct detect *);
size_t detect_workspace_bytes(const struct detect *);

// The type of every version. `result`: detect_result_bytes; `workspace`: detect_workspace_bytes,
// with any content. Both are 64-byte aligned. Thread-safe with different `result` and `workspace`.
typedef void detect_fn(const struct detect *, const struct detect_input *,
                       struct detect_result *result, void *workspace);

detect_fn detect_reference;

// Parts of a result.
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

// --- merge: the lists of one picture's tiles become one list

enum detect_metric { DETECT_IOU, DETECT_IOS }; // shared / united area; shared / smaller area

// Greedy over boxes in source pixels, best score first, the first in the list on a tie. A box is
// removed by the best kept box that it overlaps with a quotient above the threshold.
struct detect_merge {
    enum detect_metric metric;
    bool absorb; // like SAHI's greedy NMM: a kept box grows to the hull of itself and all boxes
                 // that it removes; overlap is tested with its original size
    bool agnostic;
    double threshold; // 0 to 1
    int32_t max_det;  // 0: all
};

size_t detect_merge_bytes(int n); // of the workspace, aligned to 8 bytes

// Writes the remaining boxes of `from` to `to` (n, not `from`), and their indices in `from` to
// `ret_source` (n, or NULL). Drops boxes that are not finite and NaN scores. Returns the number of
// boxes; -EINVAL: a threshold out of range, or negative numbers. Thread-safe.
int detect_merge(struct detection to[], int32_t ret_source[], const struct detection from[], int n,
                 const struct detect_merge *, void *workspace);

#ifdef __cplusplus
}
#endif
#endif
