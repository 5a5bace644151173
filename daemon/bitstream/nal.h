// The NAL units of a packet of H.264 or H.265, their syntax elements and their headers (7.3 of both
// standards). Accepts any bytes; nothing is read beyond their end.
#ifndef FRAMED_DAEMON_BITSTREAM_NAL_H
#define FRAMED_DAEMON_BITSTREAM_NAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nal {
    const uint8_t *data; // with its header and emulation prevention bytes
    size_t size;         // without trailing zeros
};

struct nal_reader {
    const uint8_t *data; // of a packet
    size_t size;
    int length_bytes; // in front of each unit; 0: start codes in between
    size_t at;        // initially 0
};

bool nal_next(struct nal_reader *, struct nal *ret); // false: no more units
// Returns the offset of the next start code (0 0 1) from `at` on; `size` if there is none.
size_t nal_find_start(const uint8_t *data, size_t size, size_t at);

// --- the bits of a unit, read without emulation prevention bytes; 0 beyond its end
struct nal_bits {
    const uint8_t *data;
    size_t size, at; // the next byte to read
    int zeros;       // consecutive zero bytes before `at`
    int left;        // bits of `byte`
    uint8_t byte;
};

uint32_t nal_u(struct nal_bits *, int n);   // u(n), n <= 32
uint32_t nal_ue(struct nal_bits *);         // ue(v); UINT32_MAX if it has more than 31 zeros
int32_t nal_se(struct nal_bits *);          // se(v)
void nal_skip(struct nal_bits *, size_t n); // n bits
bool nal_ended(const struct nal_bits *);    // bits beyond the end were read

// Finds the first SEI message of a type in an SEI unit. `*ret` reads its payload.
bool nal_find_sei(const struct nal *, size_t header_bytes, uint32_t type, struct nal_bits *ret);

// --- H.264

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

// Returns nal_unit_type; -1: there is no header.
int h264_unit_type(const struct nal *);
// Returns length_bytes from the extradata of an H.264 stream, which may be NULL.
int h264_length_bytes(const uint8_t *extradata, size_t size);

// Parameter sets and slice headers, as far as they distinguish pictures. Values are returned
// unchecked, even if the standard does not allow them: the caller bounds what it uses.
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

// Units start at their header byte.
struct h264_sps h264_sps_read(const uint8_t *unit, size_t bytes);
void h264_pps_read(const uint8_t *unit, size_t bytes, uint32_t *id, uint32_t *sps);
// Reads first_mb, type and pps. The rest needs the SPS that the PPS belongs to.
struct h264_slice h264_slice_read(const uint8_t *unit, size_t bytes);
void h264_slice_read_field(struct h264_slice *, const struct h264_sps *, const uint8_t *unit,
                           size_t bytes);

// --- H.265

enum hevc_unit { // nal_unit_type
    HEVC_UNIT_RASL_R = 9,
    HEVC_UNIT_RSV_VCL_N14 = 14, // up to here even types are of pictures that no other picture of
                                // their sub-layer refers to
    HEVC_UNIT_BLA_W_LP = 16,
    HEVC_UNIT_BLA_N_LP = 18,
    HEVC_UNIT_IDR_W_RADL = 19,
    HEVC_UNIT_IDR_N_LP = 20,
    HEVC_UNIT_CRA = 21,
    HEVC_UNIT_RSV_IRAP_VCL23 = 23,
    HEVC_UNIT_RSV_VCL31 = 31, // the last slice segment
    HEVC_UNIT_VPS = 32,
    HEVC_UNIT_SPS = 33,
    HEVC_UNIT_PPS = 34,
    HEVC_UNIT_AUD = 35,
    HEVC_UNIT_END_OF_SEQUENCE = 36,
    HEVC_UNIT_END_OF_BITSTREAM = 37,
    HEVC_UNIT_PREFIX_SEI = 39,
    HEVC_UNIT_SUFFIX_SEI = 40,
    HEVC_UNIT_RSV_NVCL41 = 41, // to 44: precede a picture, like 48 to 55
    HEVC_UNIT_RSV_NVCL44 = 44,
};

// Returns nal_unit_type of a unit of the base layer; -1: of another layer, or an incomplete header.
int hevc_unit_type(const struct nal *);
// Returns length_bytes from the extradata of an H.265 stream, which may be NULL.
int hevc_length_bytes(const uint8_t *extradata, size_t size);
// Skips profile_tier_level() of an SPS; `sub_layers`: sps_max_sub_layers_minus1.
void hevc_skip_profile_tier_level(struct nal_bits *, int sub_layers);

// Returns true if a unit is an SPS of the base layer. *ret reads sps_max_num_reorder_pics and
// sps_max_latency_increase_plus1 of the highest sub-layer; libavcodec reads no others.
bool hevc_sps_find_reordering(const struct nal *, struct nal_bits *ret);

#endif
