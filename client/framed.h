// libframed: reads the frames of a framed daemon from a socket or, without a copy, from a ring.
//
//     struct framed_reader *reader = framed_open("ring:/run/framed/gate.ring", FRAMED_NEWEST);
//     struct framed_view view;
//     while (framed_next(reader, &view, -1) > 0)
//         printf("%s %ju\n", view.header.camera, view.header.sequence);
//
// A reader belongs to one thread at a time and to the process that opened it: after a fork the
// child may only close it. Several readers are independent. A reader connects by itself, and
// reconnects when the daemon restarts. After the first frames it allocates only when frames become
// larger. Names with FRAMED_ or framed_ that are not declared here are in wire.h.
#ifndef FRAMED_H
#define FRAMED_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/wire.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct framed_reader;
struct framed_memory;

enum framed_open_flags {
    FRAMED_NEWEST = 1, // skips to the newest frame; without it, returns every frame in order
    FRAMED_ONCE = 2,   // framed_next fails when the connection fails or ends; without it, retries
};

// A frame or a batch in place. Valid until framed_release, or the next framed_next or framed_close
// of its reader.
struct framed_view {
    const void *data; // the payload, C x H x W or similar, batch.count times in a batch
    uint64_t bytes;   // size of the payload
    uint32_t memory;  // enum framed_ring_memory; unless FRAMED_RING_HOST, data is a device pointer
    int32_t device;   // CUDA's device number, in its primary context; -1: host memory
    struct framed_header header;                  // of the frame, or of the batch's first element
    struct framed_batch batch;                    // batch.count is 0 for a single frame
    const struct framed_element_header *elements; // batch.count of them; NULL for a single frame
    uint32_t slot;                                // ring only
    uint32_t memory_number; // ring only: number of its hello, from 1; each may bring other memory
    uint64_t ticket;        // ring only, else 0
    const uint64_t *state;  // ring only: the slot's state word, valid as long as the view
    uint64_t connection;    // number of the reader's connection, from 1
    uint64_t offset;        // ring only: offset of `data` in the memory; else 0
    uint64_t memory_bytes;  // ring only: size of that whole memory; else 0
    const char *shared;     // its name as a POSIX object, with `shared:`; else NULL
    const uint8_t *ipc_handle; // its cudaIpcMemHandle_t, with `memory: cuda-ipc`; else NULL
    uint64_t reserved[2];
};

// Opens a reader of `unix:PATH`, `tcp:HOST:PORT` or `ring:PATH`, the address of an output's sink.
// flags: enum framed_open_flags. framed_next makes the connection. Returns NULL and sets errno on
// error: EINVAL (not an address, or unknown flags), ENAMETOOLONG (the path does not fit a unix
// socket's address), ENOMEM, EMFILE.
struct framed_reader *framed_open(const char *address, unsigned flags);

// Waits up to timeout_ms for a frame or batch (-1: for ever; 0: does not wait). Returns 1 and fills
// `view`, or 0 on timeout. Returns -1 and sets errno on error: EPERM in a process forked from the
// one that opened the reader. Only with FRAMED_ONCE: connect's errno (no connection), EPIPE (the
// connection ended), EPROTO (the data is not framed's protocol), EMFILE (no free descriptor for a
// ring's memory); framed_error has the text. Without FRAMED_ONCE it retries for ever, after 0.1,
// 0.2, 0.4 ... 5 s. A signal does not end the wait. Resolving the name of a tcp address may take
// longer than timeout_ms.
int framed_next(struct framed_reader *, struct framed_view *view, int timeout_ms);

// Returns the reader's file descriptor for poll, select or epoll. It is readable when framed_next
// has something to do, including a new connection. Then call framed_next with timeout 0 until it
// returns 0. The caller must not read or close the descriptor.
int framed_fd(const struct framed_reader *);

// Returns 1 if everything read from the view so far belonged to that frame, or 0 if the daemon has
// reused its slot for another frame (wire.h, the ring, 4). Call it after reading. Frames from
// sockets are always whole.
int framed_whole(const struct framed_reader *, const struct framed_view *view);

// Releases the view; on a ring its slot is then free for another frame. With `found`, sends the n
// boxes found in the frame, in the camera's picture, in the same message; the list may be empty.
// NULL, or n below 0 as after a failed framed_detect, sends no results. Returns -1 and sets errno
// on error. EINVAL, and the view is not released: it is not the reader's latest view, n is above
// FRAMED_DETECTIONS_MAX, or it is a batch and there are results (use framed_send). In all other
// cases the view is released. ESTALE: its slot was revoked earlier; results were sent nevertheless.
// EAGAIN: the daemon accepts nothing now, and the results are lost. ENOTSUP: results without a
// ring. EPIPE: the daemon is gone, and the results are lost.
int framed_release(struct framed_reader *, struct framed_view *view,
                   const struct framed_detection *found, int n);

// Sends the daemon the boxes found in a view of this connection and keeps the slot. The view may
// have been released since (keep a copy of the struct). element: the index in a batch, else 0.
// flags: FRAMED_RESULT_IN_SOURCE if boxes are in the camera's picture, not in the payload. model:
// the caller's number for its detector, which framed passes on. framed uses the first list for each
// frame or element. Never waits. Returns -1 and sets errno on error: EINVAL (n outside 0 to
// FRAMED_DETECTIONS_MAX, no such element, unknown flags, not a view of this reader), EAGAIN (the
// daemon accepts nothing now), ENOTSUP (not a ring), EPIPE (the daemon is gone), ESTALE (the view
// is from an earlier connection).
int framed_send(struct framed_reader *, const struct framed_view *view, uint32_t element,
                const struct framed_detection *found, int n, unsigned flags, uint32_t model);

// Closes the connection and frees the reader. NULL does nothing.
void framed_close(struct framed_reader *);

// Returns why the last connection failed or ended, or "" if none has. Valid until the next call for
// the reader.
const char *framed_error(const struct framed_reader *);

struct framed_counts {
    uint64_t frames;      // frames and batches returned by framed_next
    uint64_t skipped;     // released unread: a newer one had arrived, or the slot was revoked
    uint64_t torn;        // views whose slot was revoked before their release
    uint64_t lost;        // frames or batches that the daemon had no room for, by its own count
    uint64_t connections; // connections made
    uint64_t results;     // lists of detections sent
    uint64_t unsent;      // lists not sent, because the daemon accepted nothing or was gone
};

// Copies the reader's counts since it was opened.
void framed_count(const struct framed_reader *, struct framed_counts *);

// Keeps the memory of the current view mapped, even without its reader, until framed_drop: for
// languages that cannot tell when a pointer is last used. It does not keep the frame: later frames
// overwrite the memory. Returns NULL if there is no current view.
struct framed_memory *framed_hold(const struct framed_reader *);

// Ends a framed_hold, in any thread. NULL does nothing.
void framed_drop(struct framed_memory *);

// --- from the payload to the camera's picture

enum framed_map_flags { FRAMED_CLIP = 1 }; // to 0..source_width, 0..source_height

// Maps n boxes from the payload of a frame or element to the camera's picture, in place. A box is
// four floats x1, y1, x2, y2; `stride` is the distance between boxes in floats (4 if packed, 8 in
// an array of struct framed_detection). Afterwards x1 <= x2 and y1 <= y2. If the matrix rotates by
// other than quarter turns, the result is the smallest upright box around the four corners.
void framed_to_source(const struct framed_header *, float *boxes, size_t n, size_t stride,
                      unsigned flags);

// Maps points x, y in the same way; `stride` is 2 if they are packed.
void framed_points_to_source(const struct framed_header *, float *points, size_t n, size_t stride,
                             unsigned flags);

// --- from a network's raw output to boxes in the camera's picture: decode, filter, non-maximum
// suppression and mapping, with the same boxes on every CPU and GPU
//
//     struct framed_model model;
//     framed_model_init(&model, FRAMED_HEAD_YOLOV8);
//     model.width = model.height = 640, model.anchors = 8400, model.classes = 80;
//     model.planes = 1; // 84 x 8400, not 8400 x 84
//     struct framed_detector *detector = framed_detector_open(&model, &why);
//     ...
//     int n = framed_detect(detector, run(view.data), &view, found, 300);
//     framed_release(reader, &view, found, n);
//
// Box corners are pixel edges: the left border of a picture is 0 and the right border its width.
// Scores, order and overlap follow the heads' original frameworks step by step. A NaN score never
// makes a candidate.

// The tensors of a network, for each picture. N: anchors or queries; C: classes. "extra": keypoint
// columns, then coefficients, then the angle of rotated boxes.
enum framed_head {
    FRAMED_HEAD_YOLOV8,       // N x (cx cy w h, C scores, extra): YOLOv8 to 12 and v6
    FRAMED_HEAD_YOLOV5,       // N x (cx cy w h, objectness, C scores, extra): v5, v7
    FRAMED_HEAD_YOLOX,        // the same with >= conf; with strides: cells and logarithms of sides
    FRAMED_HEAD_END2END,      // N x (x1 y1 x2 y2, score, class, extra): v10, YOLO26
    FRAMED_HEAD_DETR,         // N x (cx cy w h) of 0..1, and N x C scores; softmax: N x (C + 1)
    FRAMED_HEAD_EFFICIENTNMS, // N x (x1 y1 x2 y2), N scores, N classes, and 1 count
    FRAMED_HEAD_TFLITE,       // N x (y1 x1 y2 x2) of 0..1, N scores, N classes, and 1 count
};

// The tensors of a head: only the first, the first two (detr), or all (the last two heads).
enum { FRAMED_BOXES, FRAMED_SCORES, FRAMED_CLASSES, FRAMED_COUNT, FRAMED_TENSORS };

// Little endian, aligned to their size.
enum framed_dtype {
    FRAMED_F32,
    FRAMED_F16,
    FRAMED_BF16,
    FRAMED_S8, // (element - zero) * scale
    FRAMED_U8,
    FRAMED_S32, // with S64: only for classes and counts
    FRAMED_S64,
};

enum framed_activation { FRAMED_PLAIN, FRAMED_SIGMOID, FRAMED_SOFTMAX }; // of scores

enum framed_suppression {
    FRAMED_GREEDY, // suppressed boxes do not suppress others
    FRAMED_FAST,   // suppressed boxes do
    FRAMED_SOFT,   // lowers scores by the overlap
    FRAMED_KEEP,   // keeps all boxes, for heads without duplicates
};

struct framed_format {
    uint32_t dtype; // enum framed_dtype
    float scale;    // above 0; for s8 and u8
    int32_t zero;
};

// Layout of a network's output, and the options of its detection. framed_model_init fills it.
struct framed_model {
    uint32_t bytes;             // sizeof(struct framed_model)
    uint32_t head;              // enum framed_head
    int32_t width, height;      // of the network's input, pixels
    int32_t anchors, classes;   // N, C
    int32_t pictures;           // maximum in one call; 0: 1
    uint32_t memory;            // enum framed_ring_memory of the outputs
    int32_t device;             // CUDA's device number
    uint32_t activation;        // enum framed_activation
    uint8_t planes;             // the first four heads: columns x N, not N x columns
    uint8_t normalised;         // boxes are 0..1 of the input's size
    uint8_t rotated;            // boxes have an angle: radians, from x to y
    uint8_t multi_label;        // every class above its threshold, not only the best
    uint8_t agnostic;           // boxes of all classes suppress each other
    uint8_t compat_ultralytics; // keeps classes apart by adding 7680 * class to coordinates
    uint8_t clip;               // clips boxes to the camera's picture
    uint8_t quads;              // returns each box's four corners too
    int32_t strides[4];         // of yolox, pixels; 0 after the last
    int32_t keypoints, keypoint_columns; // columns of each: x, y and any others; 0, or 2 and more
    int32_t coefficients;                // number of columns to return, such as for masks
    struct framed_format format[FRAMED_TENSORS]; // of each tensor
    float conf;                                  // scores above it are candidates
    const float *class_conf;   // C thresholds instead of conf, or NULL; only read by open
    const uint8_t *class_list; // C bytes, 0 excludes a class, or NULL; only read by open
    double iou;                // boxes that overlap a better one by more are suppressed
    uint32_t suppression;      // enum framed_suppression
    float soft_floor;          // soft: boxes with a score not above it are dropped
    int32_t candidates;        // how many of the best to process; 0: 30000; at most 8192 on a GPU
    int32_t max_det;           // maximum of boxes per picture; 0: 300
    int32_t offset;            // 1: sides are x2 - x1 + 1, as in old mmdetection models
    float width_min, width_max, height_min, height_max; // in the camera's picture; max 0: any
    uint64_t reserved[16];                              // 0
};

// Fills in a head's usual parameters: conf 0.25, iou 0.45, f32, clip, and greedy suppression, or
// keep for a head without duplicates. The caller sets the input's size, anchors and classes.
void framed_model_init(struct framed_model *, uint32_t head);

// A detector for one model, used by one thread at a time. It allocates nothing per picture.
struct framed_detector;

// Opens a detector. Returns NULL and sets errno on error: EINVAL (a parameter is out of range, or
// the head does not have it), ENOMEM, ENOTSUP (outputs on a GPU, but libframed was built without
// CUDA), ENODEV (no such GPU), EIO (CUDA failed). `ret_why`, or NULL: the mistake, and what is
// allowed.
struct framed_detector *framed_detector_open(const struct framed_model *, const char **ret_why);

// NULL does nothing.
void framed_detector_close(struct framed_detector *);

// Returns why the last call for the detector failed, or "" before that. Valid until the next call.
const char *framed_detector_error(const struct framed_detector *);

// Writes at most `max` boxes to `found`, in the camera's picture, the best first, from a network
// with one output tensor. Returns their number. Returns -1 and sets errno on error: ESTALE (the
// frame was already revoked at the call: the output may mix two frames), EINVAL (a batch, a frame
// of another size than the model's input, a head of several tensors), EIO.
int framed_detect(struct framed_detector *, const void *output, const struct framed_view *view,
                  struct framed_detection *found, int max);

// The tensors of one call. Each contains all pictures, one after the other, packed.
struct framed_output {
    const void *tensor[FRAMED_TENSORS]; // in the model's memory; NULL if the head has none
    void *stream;                       // GPU only: the CUDA stream that makes them; NULL: default
    uint64_t reserved[4];               // 0
};

enum framed_found_flags {
    FRAMED_FOUND_CUT = 1 // there were more candidates than model.candidates
};

// The boxes found in one picture. The detector owns the arrays, until its next call.
struct framed_found {
    uint32_t count, flags; // number of boxes; enum framed_found_flags
    uint32_t candidates;   // scores above their thresholds
    uint32_t dropped;      // processed candidates that are not finite, and invalid class numbers
    const struct framed_detection *detections; // count, the best first
    const uint32_t *anchors;                   // count: rows of the output
    const float *angles;       // count: radians in the camera's picture; NULL: not rotated
    const float *quads;        // count x 4 x (x, y); NULL: not requested
    const float *keypoints;    // count x keypoints x columns, in the camera's picture; NULL: none
    const float *coefficients; // count x coefficients; NULL: none
    uint64_t extra_stride;     // floats from one box's keypoints or coefficients to the next box's
    uint64_t reserved[4];
};

// Detects in a frame or batch, with all the data of each box. Fills 1 or view->batch.count lists of
// `found`; elements without a picture get an empty list. Returns the number of lists. Errors as
// framed_detect; also EINVAL for more elements than `n` or model.pictures.
int framed_detect_view(struct framed_detector *, const struct framed_output *,
                       const struct framed_view *view, struct framed_found found[], int n);

// The same without a view, for n pictures. Of their headers it reads only the flags, dst_to_src,
// and for clipping source_width and source_height. `stride`: bytes from header to header. Returns
// n, or -1 and sets errno: EINVAL (n is above model.pictures), EIO.
int framed_detect_headers(struct framed_detector *, const struct framed_output *,
                          const struct framed_header *headers, size_t stride,
                          struct framed_found found[], int n);

// --- tiles: merges the lists of one picture

enum framed_merge_flags {
    FRAMED_MERGE_IOS = 1,    // overlap relative to the smaller box's area; else to the union's
    FRAMED_MERGE_ABSORB = 2, // a kept box grows to the hull of itself and the boxes merged into it
    FRAMED_MERGE_AGNOSTIC = 4, // merges boxes of different classes too
};

// Merges boxes in the camera's picture. A box that overlaps better ones by more than `threshold`, 0
// to 1, is merged into the best of them; boxes that are not finite are dropped. Writes the kept
// boxes to `to` (n, not `from`), the best first, and their indices in `from` to `ret_source` (n, or
// NULL). Returns how many are kept. -1 and errno EINVAL, ENOMEM. Thread-safe.
int framed_merge(struct framed_detection *to, int32_t *ret_source,
                 const struct framed_detection *from, int n, double threshold, unsigned flags);

// --- trilinear interpolation: n points, each in its own cell whose 8 corners have f features

// The memory of a call's arrays.
struct framed_place {
    uint32_t memory;      // enum framed_ring_memory: FRAMED_RING_HOST or FRAMED_RING_CUDA
    int32_t device;       // GPU only: CUDA's device number
    void *stream;         // GPU only: the CUDA stream for the work; NULL: default
    uint64_t reserved[4]; // 0
};

// Interpolates n x 8 x f features at n x 3 points x, y, z from -1 to 1, to `out`, n x f. Corner k
// of a cell lies at +1 (not -1) in x if k has bit 2, in y with bit 1, in z with bit 0, so that its
// corners are an array [x][y][z]. With u = (x + 1) / 2 the corner's weight is the product of u, or
// 1 - u at -1, and the same for y and z; `out` is the sum of weights times features. Points outside
// -1 to 1 are extrapolated. CPU and GPU give the same bytes. f: 1 to 2^24. Arrays are packed
// floats, and `out` must not be one of the others. place: NULL is host memory, in the calling
// thread. On a GPU it does not wait: arrays must stay until the stream is done. Returns 0, or -1
// and sets errno: EINVAL (f, unknown memory, or more features than memory can have), ENOTSUP (a
// GPU, but libframed was built without CUDA), ENODEV (no such GPU), EIO. Thread-safe.
int framed_trilinear_forward(float *out, const float *features, const float *points, uint64_t n,
                             uint64_t f, const struct framed_place *place);

// Computes the gradients of framed_trilinear_forward from grad_out, n x f. grad_features, n x 8 x
// f: the weights times grad_out. grad_points, n x 3: the slopes at each point along x, y and z.
// Either may be NULL; without grad_points `features` may be NULL too. The rest is as above.
int framed_trilinear_backward(float *grad_features, float *grad_points, const float *grad_out,
                              const float *features, const float *points, uint64_t n, uint64_t f,
                              const struct framed_place *place);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
