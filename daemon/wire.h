// The wire: every frame on a `protocol: framed` sink is this header and `payload_bytes` bytes
// behind it. All numbers are little-endian. For consumers to include as it is; C11 and C++11.
#ifndef FRAMED_WIRE_H
#define FRAMED_WIRE_H

#include <stdint.h>

#define FRAMED_MAGIC   "FRMD"
#define FRAMED_VERSION 1

enum framed_flags {
    FRAMED_FLAG_DAMAGED = 1,        // the decoder reported errors in this picture
    FRAMED_FLAG_KEYFRAME = 2,       // decodable by itself
    FRAMED_FLAG_FIRST_OF_EPOCH = 4, // pts may have jumped; nothing before this frame belongs to it
    FRAMED_FLAG_CAPTURE_CLOCK = 8,  // capture_ns comes from the camera's sender report
};

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
    int64_t capture_ns;     // since 1970: sender report, else time of arrival
    int64_t received_ns;    // CLOCK_MONOTONIC: packet read from the camera
    int64_t decoded_ns;     // CLOCK_MONOTONIC
    int64_t finished_ns;    // CLOCK_MONOTONIC: result complete in memory
    uint32_t width, height; // of the payload, pixels
    uint32_t source_width, source_height;
    char format[8]; // rgb bgr gray nv12 yuv420p yuv444p yuv24, zero padded
    char dtype[4];  // u8 s8 f16 f32
    char layout[4]; // nchw nhwc (unterminated), or zero for YUV
    uint32_t planes;
    uint32_t batch_index;     // 0
    uint64_t plane_offset[4]; // bytes from the start of the payload
    uint32_t plane_stride[4]; // bytes
    float src_to_dst[6];      // row major 2x3, integers at pixel centres
    float dst_to_src[6];
    char camera[24], output[16]; // UTF-8, zero padded, cut at a character
};

#ifdef __cplusplus
static_assert(sizeof(struct framed_header) == 256, "the wire header is 256 bytes");
#else
_Static_assert(sizeof(struct framed_header) == 256, "the wire header is 256 bytes");
#endif

#endif
