// The wire: every frame on a `protocol: framed` sink is this header and `payload_bytes` bytes
// behind it. All numbers are little-endian. For consumers to include as it is; C11 and C++11.
#ifndef FRAMED_WIRE_H
#define FRAMED_WIRE_H

#include <stdint.h>

#define FRAMED_MAGIC   "FRMD"
#define FRAMED_VERSION 1

enum framed_flags {
    FRAMED_FLAG_DAMAGED = 1,        // this picture, or one that it may be made from, has errors
    FRAMED_FLAG_KEYFRAME = 2,       // decodable by itself
    FRAMED_FLAG_FIRST_OF_EPOCH = 4, // pts may have jumped; nothing before this frame belongs to it
    FRAMED_FLAG_CAPTURE_CLOCK = 8,  // capture_ns comes from the camera's sender report
    FRAMED_FLAG_INTERLACED = 16, // the picture is two fields in alternate rows, or a single field
    FRAMED_FLAG_HDR = 32,        // the picture's transfer is PQ or HLG: it is not tone-mapped
};

// Boxes. The matrices of the header speak of pixel centres: the first pixel is at (0, 0). The
// corners of a box are edges: the first pixel reaches from (0, 0) to (1, 1). So a corner p of the
// payload lies at dst_to_src * (p - 1/2) + 1/2 in the source, and src_to_dst maps corners the same
// way.

// Capture time. capture_ns rises within an epoch. At the first sender report, or when the camera
// sets its clock, the time may go back. Where it goes back by up to 10 s, capture_ns stands still
// (1 ns a frame), without FRAMED_FLAG_CAPTURE_CLOCK, until the clock has caught up. Where it goes
// back further, a new epoch begins.

struct framed_header {
    char magic[4];          // FRAMED_MAGIC
    uint16_t version;       // FRAMED_VERSION
    uint16_t header_bytes;  // 256
    uint64_t payload_bytes; // that follow this header
    uint64_t sequence;      // counts every frame the camera offered to this output, lost ones too
    uint64_t lost;  // frames of this output lost to this client so far, thinned ones not counted
    int64_t pts_ns; // presentation time, unwrapped, rising within an epoch
    uint32_t epoch; // counts discontinuities of the camera
    uint32_t flags; // enum framed_flags
    int64_t capture_ns;                   // since 1970: sender report, else time of arrival
    int64_t received_ns;                  // CLOCK_MONOTONIC: packet read from the camera
    int64_t decoded_ns;                   // CLOCK_MONOTONIC
    int64_t finished_ns;                  // CLOCK_MONOTONIC: result complete in memory
    uint32_t width, height;               // of the payload, pixels
    uint32_t source_width, source_height; // as coded: src_to_dst turns them upright
    char format[8];                       // rgb bgr gray nv12 yuv420p yuv444p yuv24, zero padded
    char dtype[4];                        // u8 s8 f16 f32
    char layout[4];                       // nchw nhwc (unterminated), or zero for YUV
    uint32_t planes;
    uint32_t batch_index;     // 0
    uint64_t plane_offset[4]; // bytes from the start of the payload
    uint32_t plane_stride[4]; // bytes
    float src_to_dst[6];      // row major 2x3, integers at pixel centres
    float dst_to_src[6];
    char camera[24], output[16]; // UTF-8, zero padded, cut at a character
};

// --- The ring, `sink: ring:PATH`: a SOCK_SEQPACKET unix socket for programs on the same machine,
// which read the frames where they are.
//
// 1. Before its first frame a client gets a framed_ring_hello with file descriptors (SCM_RIGHTS): a
//    memfd, to be mapped whole and read-only; for FRAMED_RING_CUDA then one of device memory
//    (cuMemImportFromShareableHandle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR).
// 2. Each frame is one framed_ring_frame. Its payload is slot_offset + slot * slot_stride bytes
//    behind the start of the memfd, or of the device memory.
// 3. The slot is the client's until it says that it is through: with a framed_ring_return, a
//    message of its own or up to 256 in one.
// 4. A slot that is kept for longer than `max_age` (1 s where that is 0; under `overflow: wait`
//    then never) is taken away; so is, where frames find no room, what a client has besides its
//    oldest slot. As long as the frame is there, and no longer, the 64-bit word at state_offset +
//    8 * slot of the memfd is the frame's `ticket`: look before reading and once more behind it. In
//    C the first look is an atomic load with memory_order_acquire, and before the second one stands
//    atomic_thread_fence(memory_order_acquire), or it may be done ahead of reads of the payload.
// 5. Another hello may come at any time (frames of another shape, device memory gone or back): it
//    holds for all frames behind it. Slots of the one before may still be returned or not.
// 6. A client ends by closing its socket, and likewise by shutdown(SHUT_WR) or an empty message:
//    it gets no more frames, and what it has not returned is taken away.

#define FRAMED_RING_MAGIC "FRNG"

enum framed_ring_memory { FRAMED_RING_HOST = 0, FRAMED_RING_CUDA = 1 };

struct framed_ring_hello {
    char magic[4];         // FRAMED_RING_MAGIC
    uint16_t version;      // FRAMED_VERSION
    uint16_t hello_bytes;  // 256
    uint32_t slots;        // number of them
    uint32_t memory;       // enum framed_ring_memory
    uint64_t slot_offset;  // of slot 0
    uint64_t slot_stride;  // from one slot to the next
    uint64_t slot_bytes;   // of a frame, as they are now
    uint64_t state_offset; // in the memfd: 64-bit words, one a slot
    uint64_t memfd_bytes;  // to map
    uint64_t device_bytes; // of the allocation; 0 for host memory
    uint8_t device_uuid[16];
    uint32_t width, height; // as in framed_header, for the frames as they are now
    char format[8], dtype[4], layout[4];
    uint32_t planes, reserved0;
    uint64_t plane_offset[4];
    uint32_t plane_stride[4];
    char camera[24], output[16];
    uint8_t reserved1[56];
};

struct framed_ring_frame {
    struct framed_header header;
    uint32_t slot, reserved;
    uint64_t ticket; // never 0
};

struct framed_ring_return {
    uint32_t slot, reserved; // reserved: 0
    uint64_t ticket;
};

#ifdef __cplusplus
static_assert(sizeof(struct framed_header) == 256, "the wire header is 256 bytes");
static_assert(sizeof(struct framed_ring_hello) == 256, "the ring's hello is 256 bytes");
static_assert(sizeof(struct framed_ring_frame) == 272, "a ring frame is 272 bytes");
static_assert(sizeof(struct framed_ring_return) == 16, "a ring return is 16 bytes");
#else
_Static_assert(sizeof(struct framed_header) == 256, "the wire header is 256 bytes");
_Static_assert(sizeof(struct framed_ring_hello) == 256, "the ring's hello is 256 bytes");
_Static_assert(sizeof(struct framed_ring_frame) == 272, "a ring frame is 272 bytes");
_Static_assert(sizeof(struct framed_ring_return) == 16, "a ring return is 16 bytes");
#endif

#endif
