// Parameter sets and slice headers of H.264 (ITU-T H.264, 7.3), as far as they distinguish
// pictures. Values are returned unchecked, even if the standard does not allow them: the caller
// bounds what it uses.
#ifndef FRAMED_DAEMON_BITSTREAM_H264_HEADERS_H
#define FRAMED_DAEMON_BITSTREAM_H264_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum h264_unit { // nal_unit_type
    H264_UNIT_SLICE = 1,
    H264_UNIT_PARTITION_A = 2,
    H264_UNIT_PARTITION_B = 3,
    H264_UNIT_PARTITION_C = 4,
    H264_UNIT_IDR = 5,
    H264_UNIT_SEI = 6,
    H264_UNIT_SPS = 7,
    H264_UNIT_PPS = 8,
    H264_UNIT_AUD = 9,
    H264_UNIT_END_OF_SEQUENCE = 10,
    H264_UNIT_END_OF_STREAM = 11,
    H264_UNIT_SPS_EXTENSION = 13,
    H264_UNIT_PREFIX = 14,
    H264_UNIT_RESERVED_18 = 18,
    H264_UNIT_AUXILIARY = 19,
    H264_UNIT_EXTENSION = 20,
    H264_UNIT_DEPTH_EXTENSION = 21,
};

enum { H264_SPS_MAX = 32, H264_PPS_MAX = 256 };

struct h264_sps {
    uint8_t profile, constraints, level;
    uint32_t id;
    int plane_bits; // of colour_plane_id, which precedes frame_num: 0 or 2
    uint32_t frame_num_bits;
    uint32_t references; // max_num_ref_frames
    bool gaps;           // gaps_in_frame_num_value_allowed_flag
    uint32_t poc_type;
    uint32_t poc_lsb_bits; // 0: poc_type is not 0
    bool fields;           // frame_mbs_only_flag is 0: pictures may be fields
};

// Fields up to frame_num, `field` and `bottom`.
struct h264_slice {
    uint32_t first_mb, type, pps;
    uint32_t frame_num;
    bool field, bottom;
};

// Returns true if a packet's picture is an IDR: nothing after it refers to anything before it.
// `length_bytes` as in struct nal_reader (nal.h).
bool h264_begins_idr(const uint8_t *data, size_t size, int length_bytes);

// Units start at their header byte.
struct h264_sps h264_sps_read(const uint8_t *unit, size_t bytes);
void h264_pps_read(const uint8_t *unit, size_t bytes, uint32_t *id, uint32_t *sps);
// Reads first_mb, type and pps. The rest needs the SPS that the PPS belongs to.
struct h264_slice h264_slice_read(const uint8_t *unit, size_t bytes);
void h264_slice_read_field(struct h264_slice *, const struct h264_sps *, const uint8_t *unit,
                           size_t bytes);

#endif
