// libframed: reads the frames of a framed daemon, from a socket or, without a copy, from a ring.
//
//     struct framed_reader *reader = framed_open("ring:/run/framed/gate.ring", FRAMED_NEWEST);
//     struct framed_view view;
//     while (framed_next(reader, &view, -1) > 0)
//         printf("%s %ju\n", view.header.camera, view.header.sequence);
//
// A reader belongs to one thread at a time, and to the process that opened it: after a fork the
// child only closes it. Several readers are independent. It connects by itself, and again whenever
// the daemon restarts. After the first frames it allocates nothing until frames
// become larger. The names that begin with FRAMED_ or framed_ and are not here are in wire.h.
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
    FRAMED_NEWEST = 1, // skip to the newest frame; else each frame in turn
    FRAMED_ONCE = 2,   // framed_next fails where the connection fails or ends; else it tries again
};

// A frame or a batch, where it lies. It ends with framed_release, or with the next framed_next or
// framed_close of its reader.
struct framed_view {
    const void *data; // the payload: C x H x W or the like; of a batch batch.count times that
    uint64_t bytes;   // of the payload
    uint32_t memory;  // enum framed_ring_memory: of all but FRAMED_RING_HOST a device pointer
    int32_t device;   // CUDA's number of the device, in its primary context; -1: host memory
    struct framed_header header;                  // of the frame, or of the batch's first element
    struct framed_batch batch;                    // batch.count is 0: a single frame
    const struct framed_element_header *elements; // batch.count of them; NULL: a single frame
    uint32_t slot;                                // of a ring
    uint32_t memory_number;    // of a ring: counts its hellos from 1; each may be of other memory
    uint64_t ticket;           // of a ring; 0: not from a ring
    const uint64_t *state;     // of a ring: the slot's state word, as long as the view lasts
    uint64_t connection;       // counts the reader's connections, from 1
    uint64_t offset;           // of a ring: of `data` from the start of the memory; else 0
    uint64_t memory_bytes;     // of all of that memory; else 0
    const char *shared;        // its name as a POSIX object, with `shared:`; else NULL
    const uint8_t *ipc_handle; // its cudaIpcMemHandle_t, with `memory: cuda-ipc`; else NULL
    uint64_t reserved[2];
};

// Opens a reader of `unix:PATH`, `tcp:HOST:PORT` or `ring:PATH`, the address of an output's sink.
// flags: enum framed_open_flags. The connection is made in framed_next. NULL and errno: EINVAL (not
// an address, or unknown flags), ENAMETOOLONG (the path does not fit a unix socket's address),
// ENOMEM, EMFILE.
struct framed_reader *framed_open(const char *address, unsigned flags);

// Waits for a frame or batch for up to timeout_ms (-1: for ever; 0: only looks). 1: `view` has it.
// 0: not in this time. -1 and errno: EPERM in a process that was forked from the one that opened
// the reader; the rest with FRAMED_ONCE alone: the connection could not be made (connect's errno),
// ended (EPIPE), what came is not framed's protocol (EPROTO), or there is no free descriptor for a
// ring's memory (EMFILE); framed_error has the text. Without FRAMED_ONCE it tries again after 0.1,
// 0.2, 0.4 ... 5 s, for ever. A signal does not end the wait. The name of a tcp address may take
// the resolver longer than timeout_ms.
int framed_next(struct framed_reader *, struct framed_view *view, int timeout_ms);

// A file descriptor of the reader's for poll, select or epoll: it is readable when framed_next has
// something to do, also a new connection. Then call framed_next with timeout 0 until it returns 0.
// The caller must not read it or close it.
int framed_fd(const struct framed_reader *);

// Whether what was read of the view up to now was that frame: 1, or 0 where the daemon has given
// its slot to another frame meanwhile (wire.h, the ring, 4). Ask behind the reading. Frames of
// sockets are always whole.
int framed_whole(const struct framed_reader *, const struct framed_view *view);

// Gives the view back; of a ring its slot is free for another frame. With `found`, n boxes in the
// camera's picture, what was found in the frame goes to the daemon in the same message, an empty
// list too; NULL, or n below 0 as after a framed_detect that failed: without results. -1 and errno:
// EINVAL, and the view stays out: it is not the reader's latest view, n is above
// FRAMED_DETECTIONS_MAX, or it is a batch and there are results (framed_send). In all other cases
// the view has been given back. ESTALE: its slot was taken away before; results were sent all the
// same. EAGAIN: the daemon takes nothing now, and the results are lost. ENOTSUP: results, but not
// of a ring. EPIPE: the daemon is gone, and with it the results.
int framed_release(struct framed_reader *, struct framed_view *view,
                   const struct framed_detection *found, int n);

// Sends the daemon what was found in a view of this connection, which may have been given back
// since (keep a copy of the struct), and keeps the slot. element: of a batch the index, else 0.
// flags: FRAMED_RESULT_IN_SOURCE where boxes are in the camera's picture and not in the payload.
// model: a number of the caller's for its detector, which framed passes on. Of a frame or element
// framed takes the first list that comes. Never waits. -1 and
// errno: EINVAL (n outside 0 to FRAMED_DETECTIONS_MAX, no such element, unknown flags, no view of
// this reader), EAGAIN (the daemon takes nothing now), ENOTSUP (not a ring), EPIPE (the daemon is
// gone), ESTALE (the view came over an earlier connection).
int framed_send(struct framed_reader *, const struct framed_view *view, uint32_t element,
                const struct framed_detection *found, int n, unsigned flags, uint32_t model);

// Ends the connection and all else of the reader. NULL does nothing.
void framed_close(struct framed_reader *);

// Why the last connection could not be made or ended; "" where there was none that did. Valid until
// the next call for the reader.
const char *framed_error(const struct framed_reader *);

struct framed_counts {
    uint64_t frames;      // and batches, that framed_next gave
    uint64_t skipped;     // given back unread: a newer one was there, or the slot was gone
    uint64_t torn;        // views whose slot was taken away before they were released
    uint64_t lost;        // frames or batches that the daemon had no room for, by its own count
    uint64_t connections; // that were made
    uint64_t results;     // lists of detections that were sent
    uint64_t unsent;      // and that were not, as the daemon took nothing or was gone
};

// What the reader has counted since it was opened.
void framed_count(const struct framed_reader *, struct framed_counts *);

// Keeps the memory of the view that is out mapped beyond its reader, until framed_drop, for
// languages that cannot tell when a pointer is used last. The frame does not stay: later frames go
// to the same memory. NULL: there is no view.
struct framed_memory *framed_hold(const struct framed_reader *);

// Ends a framed_hold, in any thread. NULL does nothing.
void framed_drop(struct framed_memory *);

// --- from the payload to the camera's picture

enum framed_map_flags { FRAMED_CLIP = 1 }; // to the picture: 0 to source_width, 0 to source_height

// Maps boxes in the payload of a frame or element to boxes in the camera's picture, in place: n
// boxes of four floats x1, y1, x2, y2, each `stride` floats behind the one before (4 where they are
// packed, 8 in an array of struct framed_detection). Afterwards x1 <= x2 and y1 <= y2; where the
// matrix rotates by other than quarter turns, it is the smallest upright box around the four
// corners.
void framed_to_source(const struct framed_header *, float *boxes, size_t n, size_t stride,
                      unsigned flags);

// The same for points x, y: `stride` is 2 where they are packed.
void framed_points_to_source(const struct framed_header *, float *points, size_t n, size_t stride,
                             unsigned flags);

// --- from a network's raw output to boxes in the camera's picture: decode, filter, non-maximum
// suppression and mapping, the same boxes on every CPU and GPU
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
// Boxes are corners as edges: the left border of a picture is 0 and the right one its width.
// Scores, order and overlap are those of the frameworks that the heads come from, step by step; a
// score that is not a number is none.

// The tensors of a network, for each picture. N: anchors or queries; C: classes. "extra": columns
// of keypoints, then coefficients, then the angle where boxes are rotated.
enum framed_head {
    FRAMED_HEAD_YOLOV8,       // N x (cx cy w h, C scores, extra): YOLOv8 to 12 and v6
    FRAMED_HEAD_YOLOV5,       // N x (cx cy w h, objectness, C scores, extra): v5, v7
    FRAMED_HEAD_YOLOX,        // the same with >= conf; with strides: cells and logarithms of sides
    FRAMED_HEAD_END2END,      // N x (x1 y1 x2 y2, score, class, extra): v10, YOLO26
    FRAMED_HEAD_DETR,         // N x (cx cy w h) of 0..1, and N x C scores; softmax: N x (C + 1)
    FRAMED_HEAD_EFFICIENTNMS, // N x (x1 y1 x2 y2), N scores, N classes, and 1 count
    FRAMED_HEAD_TFLITE,       // N x (y1 x1 y2 x2) of 0..1, N scores, N classes, and 1 count
};

// The tensors of a head: the first alone, the first two (detr), or all (the last two).
enum { FRAMED_BOXES, FRAMED_SCORES, FRAMED_CLASSES, FRAMED_COUNT, FRAMED_TENSORS };

// Little endian, aligned to their size.
enum framed_dtype {
    FRAMED_F32,
    FRAMED_F16,
    FRAMED_BF16,
    FRAMED_S8, // (element - zero) * scale
    FRAMED_U8,
    FRAMED_S32, // classes and counts alone
    FRAMED_S64,
};

enum framed_activation { FRAMED_PLAIN, FRAMED_SIGMOID, FRAMED_SOFTMAX }; // of scores

enum framed_suppression {
    FRAMED_GREEDY, // a box that is gone suppresses none
    FRAMED_FAST,   // it does
    FRAMED_SOFT,   // lowers scores by the overlap
    FRAMED_KEEP,   // none: of heads without duplicates
};

struct framed_format {
    uint32_t dtype; // enum framed_dtype
    float scale;    // above 0; of s8 and u8
    int32_t zero;
};

// What a network's output looks like, and what is wanted of it. framed_model_init fills it.
struct framed_model {
    uint32_t bytes;                      // sizeof(struct framed_model)
    uint32_t head;                       // enum framed_head
    int32_t width, height;               // of the network's input, pixels
    int32_t anchors, classes;            // N, C
    int32_t pictures;                    // of a call at most; 0: 1
    uint32_t memory;                     // enum framed_ring_memory: where the outputs lie
    int32_t device;                      // CUDA's number of it
    uint32_t activation;                 // enum framed_activation
    uint8_t planes;                      // the first four heads: columns x N, not N x columns
    uint8_t normalised;                  // boxes are 0..1 of the input's size
    uint8_t rotated;                     // boxes have an angle: radians, from x to y
    uint8_t multi_label;                 // every class above its threshold, not the best alone
    uint8_t agnostic;                    // boxes of all classes suppress each other
    uint8_t compat_ultralytics;          // classes are held apart by 7680 * class in coordinates
    uint8_t clip;                        // boxes, to the camera's picture
    uint8_t quads;                       // hand out each box's four corners, too
    int32_t strides[4];                  // of yolox, pixels; 0 behind the last
    int32_t keypoints, keypoint_columns; // each x, y and what else there is; 0, or 2 and more
    int32_t coefficients;                // columns that are handed out, as of masks
    struct framed_format format[FRAMED_TENSORS]; // of each tensor
    float conf;                                  // scores above it are candidates
    const float *class_conf;   // C thresholds in its place; NULL: none. Read by open alone
    const uint8_t *class_list; // C bytes, 0 leaves a class out; NULL: none. Read by open alone
    double iou;                // a box goes whose overlap with a better one is above it
    uint32_t suppression;      // enum framed_suppression
    float soft_floor;          // of soft: boxes go whose score is not above it
    int32_t candidates;        // the best that go on; 0: 30000; on a GPU 8192 at most
    int32_t max_det;           // boxes of a picture; 0: 300
    int32_t offset;            // 1: sides are x2 - x1 + 1, of old mmdetection models
    float width_min, width_max, height_min, height_max; // in the camera's picture; max 0: any
    uint64_t reserved[16];                              // 0
};

// Fills in a head's usual parameters: conf 0.25, iou 0.45, greedy, or kept where a head has no
// duplicates, f32, clipped. The input's size, anchors and classes are the caller's.
void framed_model_init(struct framed_model *, uint32_t head);

// Detects for one model, in one thread at a time. Nothing of it allocates per picture.
struct framed_detector;

// Opens a detector. NULL and errno: EINVAL (a parameter is out of range, or the head does not have
// it), ENOMEM, ENOTSUP (outputs on a GPU, and this libframed was built without CUDA), ENODEV (no
// such GPU), EIO (CUDA failed). `ret_why`: what is wrong and what is allowed; NULL: not wanted.
struct framed_detector *framed_detector_open(const struct framed_model *, const char **ret_why);

// NULL does nothing.
void framed_detector_close(struct framed_detector *);

// Why the last call for the detector failed; "" before that. Valid until the next one.
const char *framed_detector_error(const struct framed_detector *);

// Writes to `found` the boxes, `max` at most, that a network whose output is one tensor found in a
// frame: in the camera's picture, the best first. Returns how many. -1 and errno: ESTALE (the
// daemon had taken the frame away before this was called: the output may be of two frames), EINVAL
// (a batch, a frame of another size than the model's input, a head of several tensors), EIO.
int framed_detect(struct framed_detector *, const void *output, const struct framed_view *view,
                  struct framed_detection *found, int max);

// The tensors of a call's pictures. Each holds those of all pictures, one behind the other, packed.
struct framed_output {
    const void *tensor[FRAMED_TENSORS]; // in the model's memory; NULL where the head has none
    void *stream;                       // of a GPU: CUDA's stream that makes them; NULL: default
    uint64_t reserved[4];               // 0
};

enum framed_found_flags {
    FRAMED_FOUND_CUT = 1 // there were more candidates than model.candidates
};

// What was found in a picture. The arrays are the detector's, until its next call.
struct framed_found {
    uint32_t count, flags; // of boxes; enum framed_found_flags
    uint32_t candidates;   // scores above their thresholds
    uint32_t dropped; // boxes that are not finite, of those that went on, and classes of no number
    const struct framed_detection *detections; // count, the best first
    const uint32_t *anchors;                   // count: rows of the output
    const float *angles;       // count: radians in the camera's picture; NULL: not rotated
    const float *quads;        // count x 4 x (x, y); NULL: not wanted
    const float *keypoints;    // count x keypoints x columns, in the camera's picture; NULL: none
    const float *coefficients; // count x coefficients; NULL: none
    uint64_t extra_stride; // floats from a box's keypoints, or coefficients, to those of the next
    uint64_t reserved[4];
};

// The same with all that is known of each box, for frames and batches: `found` gets 1, or
// view->batch.count lists. Elements without a picture have an empty one. Returns how many. -1 and
// errno as framed_detect; EINVAL, too, where there are more elements than `n` or model.pictures.
int framed_detect_view(struct framed_detector *, const struct framed_output *,
                       const struct framed_view *view, struct framed_found found[], int n);

// The same without a view, for n pictures of which only the headers, or the matrices, are left:
// dst_to_src, and where boxes are clipped source_width and source_height. `stride`: bytes from
// header to header. Returns n. -1 and errno EINVAL (n is above model.pictures), EIO.
int framed_detect_headers(struct framed_detector *, const struct framed_output *,
                          const struct framed_header *headers, size_t stride,
                          struct framed_found found[], int n);

// --- tiles: the lists of one picture to one list

enum framed_merge_flags {
    FRAMED_MERGE_IOS = 1,      // overlap by the smaller box's area; else by the union's
    FRAMED_MERGE_ABSORB = 2,   // a kept box becomes the hull of itself and all that go with it
    FRAMED_MERGE_AGNOSTIC = 4, // whatever their classes are
};

// Writes to `to` (n, not `from`) what is left of boxes in the camera's picture, the best first, and
// to `ret_source` (n; NULL: not wanted) which of `from` each is: a box goes with the best of those
// kept that it overlaps by more than `threshold`, 0 to 1. Boxes that are not finite go, too.
// Returns how many are left. -1 and errno EINVAL, ENOMEM. Thread-safe.
int framed_merge(struct framed_detection *to, int32_t *ret_source,
                 const struct framed_detection *from, int n, double threshold, unsigned flags);

// --- trilinear interpolation: n points, each in a cell of its own whose 8 corners have f features

// Where the arrays of a call lie.
struct framed_place {
    uint32_t memory;      // enum framed_ring_memory: FRAMED_RING_HOST, or FRAMED_RING_CUDA
    int32_t device;       // of a GPU: CUDA's number of it
    void *stream;         // of a GPU: CUDA's stream, which the work goes to; NULL: default
    uint64_t reserved[4]; // 0
};

// Interpolates n x 8 x f features at n x 3 points x, y, z from -1 to 1, to `out`, n x f. Corner k
// of a cell lies at +1, and not at -1, in x where k has bit 2, in y with bit 1, in z with bit 0, so
// that its corners are an array [x][y][z]. With u = (x + 1) / 2 the corner's weight is the product
// of u, or 1 - u at -1, and of the same for y and z; `out` is the sum of weights times features.
// Points beyond -1 to 1 are extrapolated. CPU and GPU give the same bytes. f: 1 to 2^24.
// Arrays are packed floats, and `out` is none of the others. place: NULL: host memory, in the
// calling thread. On a GPU it does not wait: arrays must stay until the stream is done. Returns 0.
// -1 and errno: EINVAL (f, an unknown memory, or more features than memory can have), ENOTSUP (a
// GPU, and this libframed was built without CUDA), ENODEV (no such GPU), EIO. Thread-safe.
int framed_trilinear_forward(float *out, const float *features, const float *points, uint64_t n,
                             uint64_t f, const struct framed_place *place);

// The gradients of that, from grad_out, n x f: to grad_features, n x 8 x f, the weights times
// grad_out; to grad_points, n x 3, the slopes at each point along x, y and z. Of the two, NULL: not
// wanted; without grad_points `features` is not read, and may be NULL. All else is as above.
int framed_trilinear_backward(float *grad_features, float *grad_points, const float *grad_out,
                              const float *features, const float *points, uint64_t n, uint64_t f,
                              const struct framed_place *place);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
