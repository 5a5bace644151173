// The wire format. Every frame of a sink with `protocol: framed` is a struct framed_header followed
// by the payload, `payload_bytes` bytes. All numbers are little-endian. Programs that read frames
// include this file unchanged, in C11 or C++11.
#ifndef FRAMED_WIRE_H
#define FRAMED_WIRE_H

#include <stdint.h>

#define FRAMED_MAGIC   "FRMD"
#define FRAMED_VERSION 1

enum framed_flags {
    FRAMED_FLAG_DAMAGED = 1,        // the picture, or a picture that it may refer to, has errors
    FRAMED_FLAG_KEYFRAME = 2,       // the picture can be decoded without any other
    FRAMED_FLAG_FIRST_OF_EPOCH = 4, // first frame of its epoch: pts may have jumped
    FRAMED_FLAG_CAPTURE_CLOCK = 8,  // capture_ns comes from the camera's sender reports
    FRAMED_FLAG_INTERLACED = 16, // the picture is two fields in alternate rows, or a single field
    FRAMED_FLAG_HDR = 32,        // the picture's transfer is PQ or HLG; framed does not tone-map
    FRAMED_FLAG_EMPTY = 64,      // no picture: an element of a batch that was not filled, or failed
};

// Boxes. The matrices count from pixel centres: the centre of the first pixel is (0, 0). Corners of
// boxes count from pixel edges: the first pixel reaches from (0, 0) to (1, 1). So a corner p of the
// payload is at dst_to_src * (p - 1/2) + 1/2 in the source. src_to_dst maps a corner of the source
// in the same way.

// Capture time. capture_ns rises within an epoch. If the camera sets its clock by more than half a
// second, on or back, a new epoch begins. The first sender report may set the clock back: by up to
// 10 s, capture_ns rises by only 1 ns a frame, without FRAMED_FLAG_CAPTURE_CLOCK, until the clock
// has caught up; by more, a new epoch begins. After a jump of the stream's own time capture_ns
// continues by the times of arrival until the next sender report.

struct framed_header {
    char magic[4];          // FRAMED_MAGIC
    uint16_t version;       // FRAMED_VERSION
    uint16_t header_bytes;  // 256
    uint64_t payload_bytes; // of the payload after this header
    uint64_t sequence;      // counts the frames that the camera offered to this output, from 0
    uint64_t lost;  // frames of this output that this client has missed, except thinned and still
    int64_t pts_ns; // presentation time, unwrapped, rising within an epoch
    uint32_t epoch; // counts the discontinuities of the camera
    uint32_t flags; // enum framed_flags
    int64_t capture_ns;                   // since 1970: from sender reports, else time of arrival
    int64_t received_ns;                  // CLOCK_MONOTONIC: the picture's first packet arrived
    int64_t decoded_ns;                   // CLOCK_MONOTONIC: the picture was decoded
    int64_t finished_ns;                  // CLOCK_MONOTONIC: the result was complete in memory
    uint32_t width, height;               // of the payload, pixels
    uint32_t source_width, source_height; // of the picture as coded; src_to_dst turns it upright
    char format[8];                       // rgb bgr gray nv12 yuv420p yuv444p yuv24, zero padded
    char dtype[4];                        // u8 s8 f16 f32
    char layout[4];                       // nchw nhwc (unterminated), or zero for YUV
    uint32_t planes;
    uint32_t batch_index;        // 0
    uint64_t plane_offset[4];    // bytes from the start of the payload
    uint32_t plane_stride[4];    // bytes
    float src_to_dst[6];         // row major 2x3, integers at pixel centres
    float dst_to_src[6];         // the inverse of src_to_dst
    char camera[24], output[16]; // UTF-8, zero padded, cut at a character
};

// --- Batches: outputs of `batches:`, also with several regions or tiles of a picture, and outputs
// with `crops`, whose elements are boxes found by clients in one picture. A batch is a
// framed_batch, `count` headers and the payload. Element i is header i and the element_bytes at i *
// element_bytes of the payload, which together are an array of count x C x H x W. In a socket or
// file these three follow each other; in a ring the message is the framed_batch alone, and the
// headers are in the shared memory.

#define FRAMED_BATCH_MAGIC "FRBT"

enum framed_closed_by {
    FRAMED_CLOSED_FULL = 1,     // no element is free
    FRAMED_CLOSED_ALL = 2,      // every live camera of the batch is in it; with crops every box
    FRAMED_CLOSED_WAIT = 3,     // its `wait` was over
    FRAMED_CLOSED_RELOAD = 4,   // its cameras or its memory changed
    FRAMED_CLOSED_STOPPING = 5, // the output ends
};

struct framed_batch {
    char magic[4];          // FRAMED_BATCH_MAGIC
    uint16_t version;       // FRAMED_VERSION
    uint16_t bytes;         // 128, of this struct
    uint32_t count;         // elements in headers and payload, with empty ones in between
    uint32_t capacity;      // most elements that the output's batches have
    uint32_t closed_by;     // enum framed_closed_by
    uint32_t header_bytes;  // of each header: sizeof(struct framed_element_header)
    uint64_t element_bytes; // of the payload of each element
    uint64_t payload_bytes; // count * element_bytes
    uint64_t sequence;      // counts the batches of the output, from 0
    uint64_t lost;          // batches that this client has missed
    int64_t opened_ns;      // CLOCK_MONOTONIC: the first picture took an element
    int64_t closed_ns;      // CLOCK_MONOTONIC: it takes no more pictures
    int64_t finished_ns;    // CLOCK_MONOTONIC: the last element was complete in memory
    uint32_t slot;          // of a ring: where the payload is; else 0
    uint32_t elements;      // elements that are not empty
    uint64_t ticket;        // of a ring, never 0; else 0
    uint8_t reserved[32];
};

// The analysis of a picture (keys `stats`, `gate` and `kernel: stats`).
enum framed_scene {
    FRAMED_SCENE_KNOWN = 1,    // the picture was analysed; damaged ones are not
    FRAMED_SCENE_MOVING = 2,   // something moves
    FRAMED_SCENE_LIGHT = 4,    // all of it became lighter or darker at once
    FRAMED_SCENE_LEARNING = 8, // too few pictures were analysed so far to detect motion
    // Alarms that are raised:
    FRAMED_SCENE_DARK = 1 << 8,
    FRAMED_SCENE_GLARE = 1 << 9,
    FRAMED_SCENE_FROZEN = 1 << 10,
    FRAMED_SCENE_BLURRED = 1 << 11, // covered, or out of focus
    FRAMED_SCENE_MOVED = 1 << 12,   // the camera shows another scene than before
};

// The header of an element, the same for all clients: `header` has 320 header_bytes, the
// payload_bytes of the element, batch_index i and plane offsets from the start of the batch's
// payload. Its `lost` counts the camera's frames that no batch got, from the camera's first element
// on; framed_batch.lost counts the batches that a client has missed. FRAMED_FLAG_FIRST_OF_EPOCH is
// in the camera's first element of the epoch in any batch. Empty elements have the flag
// FRAMED_FLAG_EMPTY, payload_bytes, the shape, batch_index and output; the rest is 0.
struct framed_element_header {
    struct framed_header header;
    char region[24]; // name of the camera's region, zero padded; "": all of the picture
    // header.sequence of the picture that has this element. With crops, of the output in which the
    // box was found; header.sequence then counts the results with wanted boxes there.
    uint64_t parent_sequence;
    uint32_t object;      // with crops: index of the box in the client's result; else 0
    uint32_t part, parts; // index among the picture's elements, from 0, and their number
    // The analysis of the camera's whole picture; without FRAMED_SCENE_KNOWN all are 0.
    uint32_t scene;       // enum framed_scene
    uint64_t fingerprint; // 64 bits; few differ between pictures that show the same
    float luma_mean;      // mean level of luma, 0 to 255
    float sharpness;      // mean of |4 c - left - right - up - down| of luma
};

// --- The ring, `sink: ring:PATH`: a SOCK_SEQPACKET unix socket for programs on the same machine,
// which read the frames in memory that framed shares with them.
//
// 1. Before its first frame a client receives a framed_ring_hello with file descriptors
//    (SCM_RIGHTS). The first is a memfd; the client maps all of it, read-only. With
//    FRAMED_RING_CUDA the second is device memory (cuMemImportFromShareableHandle,
//    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR). With FRAMED_RING_CUDA_IPC the message is a
//    framed_ring_hello_cuda_ipc, whose handle opens the device memory (cudaIpcOpenMemHandle). If
//    the hello's `shared` is not empty, the memfd is a POSIX shared memory object of that name
//    (shm_open), which has no seals: programs that may write to it can also change its size.
// 2. Each frame is one framed_ring_frame message. Its payload begins slot_offset + slot *
//    slot_stride bytes after the start of the memfd, or of the device memory. If the hello's
//    `batch` is not 0, each message is a framed_batch, and the headers of its elements begin
//    header_offset + slot * batch * header_bytes bytes after the start of the memfd. They belong
//    to the slot as the payload does.
// 3. The client holds the slot until it sends a framed_ring_return. One message may carry up to 256
//    of them.
// 4. framed may revoke a slot: after `max_age` (if that is 0, after 1 s, but never under
//    `overflow: wait`), or when it needs room and the client holds more than one slot (the oldest
//    is spared). To detect this, compare the slot's state word, the 64-bit word at state_offset + 8
//    * slot of the memfd, with `ticket` before and after reading the payload: the frame was there
//    all the time if both are equal. In C the first comparison is an atomic load with
//    memory_order_acquire; call atomic_thread_fence(memory_order_acquire) before the second, or
//    else the processor may do it before the payload is read.
// 5. Another hello may arrive at any time (frames have another shape, device memory is gone or
//    back). It applies to all frames after it. The client may still return slots of the hello
//    before, but need not.
// 6. A client ends when it closes its socket, calls shutdown(SHUT_WR) or sends an empty message. It
//    receives no more frames, and framed takes back the slots that it holds.

#define FRAMED_RING_MAGIC "FRNG"

enum framed_ring_memory {
    FRAMED_RING_HOST = 0,
    FRAMED_RING_CUDA = 1,
    FRAMED_RING_CUDA_IPC = 2,
};

struct framed_ring_hello {
    char magic[4];         // FRAMED_RING_MAGIC
    uint16_t version;      // FRAMED_VERSION
    uint16_t hello_bytes;  // 256; with FRAMED_RING_CUDA_IPC 320
    uint32_t slots;        // number of slots
    uint32_t memory;       // enum framed_ring_memory
    uint64_t slot_offset;  // of slot 0
    uint64_t slot_stride;  // bytes from the start of a slot to the start of the next
    uint64_t slot_bytes;   // of the payload of frames after this hello; for batches the most
    uint64_t state_offset; // of the state words in the memfd: 64-bit words, one a slot
    uint64_t memfd_bytes;  // to be mapped by the client
    uint64_t device_bytes; // of the device allocation; 0 for host memory
    uint8_t device_uuid[16];
    // Unless commented, the rest is as in framed_header, for the frames after this hello; for
    // batches as in element 0, without a camera.
    uint32_t width, height;
    char format[8], dtype[4], layout[4];
    uint32_t planes;
    uint32_t batch; // elements per slot; 0: single frames
    uint64_t plane_offset[4];
    uint32_t plane_stride[4];
    char camera[24], output[16];
    uint64_t header_offset; // of slot 0's headers in the memfd, if `batch` is not 0
    char shared[40];        // name of the POSIX object, zero padded; "": none
    uint8_t reserved[8];
};

// The hello with FRAMED_RING_CUDA_IPC.
struct framed_ring_hello_cuda_ipc {
    struct framed_ring_hello hello;
    uint8_t handle[64]; // cudaIpcMemHandle_t, the same as the driver's CUipcMemHandle
};

struct framed_ring_frame {
    struct framed_header header;
    uint32_t slot, reserved;
    uint64_t ticket; // never 0
};

struct framed_ring_return {
    uint32_t slot;
    uint32_t reserved; // 0
    uint64_t ticket;
};

// --- Results: objects that a client of a ring found in a frame, or in an element of a batch. A
// message, one per element, is a framed_ring_result and `count` framed_detections. The ticket
// identifies the frame. A message may arrive after the slot was revoked: framed remembers the last
// frames of an output with `detections`, and maps boxes by the frame's own matrix.

#define FRAMED_RING_RESULT_MAGIC "FRRS"
#define FRAMED_DETECTIONS_MAX    300 // of one message

// One object found by a detector: 32 bytes.
struct framed_detection {
    float x1, y1, x2, y2; // corners are edges: the first pixel reaches from (0, 0) to (1, 1)
    float score;          // as given by the detector
    uint16_t class_id;    // from 0
    uint16_t flags;       // 0
    int64_t track;        // of a tracker; 0: none
};

enum framed_result_flags {
    FRAMED_RESULT_RETURN = 1,    // returns the slot, like a framed_ring_return
    FRAMED_RESULT_IN_SOURCE = 2, // boxes in the camera's picture; else in the payload
};

struct framed_ring_result {
    char magic[4];    // FRAMED_RING_RESULT_MAGIC
    uint16_t version; // FRAMED_VERSION
    uint16_t flags;   // enum framed_result_flags
    uint32_t slot;
    uint32_t element; // of a batch: the index; else 0
    uint64_t ticket;
    uint32_t count; // of detections, may be 0
    uint32_t model; // the client's own number of its detector, which framed passes on
};

#ifdef __cplusplus
static_assert(sizeof(struct framed_header) == 256, "the wire header is 256 bytes");
static_assert(sizeof(struct framed_batch) == 128, "a batch's header is 128 bytes");
static_assert(sizeof(struct framed_element_header) == 320, "an element's header is 320 bytes");
static_assert(sizeof(struct framed_ring_hello) == 256, "the ring's hello is 256 bytes");
static_assert(sizeof(struct framed_ring_hello_cuda_ipc) == 320,
              "the hello with a handle is 320 bytes");
static_assert(sizeof(struct framed_ring_frame) == 272, "a ring frame is 272 bytes");
static_assert(sizeof(struct framed_ring_return) == 16, "a ring return is 16 bytes");
static_assert(sizeof(struct framed_detection) == 32, "a detection is 32 bytes");
static_assert(sizeof(struct framed_ring_result) == 32, "a result's header is 32 bytes");
#else
_Static_assert(sizeof(struct framed_header) == 256, "the wire header is 256 bytes");
_Static_assert(sizeof(struct framed_batch) == 128, "a batch's header is 128 bytes");
_Static_assert(sizeof(struct framed_element_header) == 320, "an element's header is 320 bytes");
_Static_assert(sizeof(struct framed_ring_hello) == 256, "the ring's hello is 256 bytes");
_Static_assert(sizeof(struct framed_ring_hello_cuda_ipc) == 320,
               "the hello with a handle is 320 bytes");
_Static_assert(sizeof(struct framed_ring_frame) == 272, "a ring frame is 272 bytes");
_Static_assert(sizeof(struct framed_ring_return) == 16, "a ring return is 16 bytes");
_Static_assert(sizeof(struct framed_detection) == 32, "a detection is 32 bytes");
_Static_assert(sizeof(struct framed_ring_result) == 32, "a result's header is 32 bytes");
#endif

#endif
