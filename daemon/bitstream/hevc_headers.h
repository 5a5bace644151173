// The parameter sets and slice segment headers of H.265 (ITU-T H.265, 7.3), as far as the syntax of
// the slice data depends on them: Main, Main 10 and Main Still Picture. Takes whatever the bytes
// are.
#ifndef FRAMED_DAEMON_BITSTREAM_HEVC_HEADERS_H
#define FRAMED_DAEMON_BITSTREAM_HEVC_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/bitstream/nal.h"

enum {
    HEVC_SPS_MAX = 16,
    HEVC_PPS_MAX = 64,
    HEVC_RPS_MAX = 64,
    HEVC_REFS_MAX = 16,
    HEVC_TILE_COLUMNS_MAX = 20,
    HEVC_TILE_ROWS_MAX = 22,
    HEVC_SIZE_MAX = 16384, // luma samples of a row or a column
};

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
    HEVC_UNIT_RSV_VCL31 = 31, // the last that is a slice segment
    HEVC_UNIT_VPS = 32,
    HEVC_UNIT_SPS = 33,
    HEVC_UNIT_PPS = 34,
    HEVC_UNIT_AUD = 35,
    HEVC_UNIT_END_OF_SEQUENCE = 36,
    HEVC_UNIT_END_OF_BITSTREAM = 37,
    HEVC_UNIT_PREFIX_SEI = 39,
    HEVC_UNIT_SUFFIX_SEI = 40,
    HEVC_UNIT_RSV_NVCL41 = 41, // to 44: ahead of a picture, as 48 to 55
    HEVC_UNIT_RSV_NVCL44 = 44,
};

enum hevc_slice_type { HEVC_SLICE_B, HEVC_SLICE_P, HEVC_SLICE_I };

enum hevc_set_state {
    HEVC_SET_ABSENT,      // none came that can be read
    HEVC_SET_UNSUPPORTED, // has tools of another profile
    HEVC_SET_READY,
};

struct hevc_rps { // st_ref_pic_set
    int negatives, positives;
    int delta[HEVC_REFS_MAX]; // of picture order count: first the negatives
    bool used[HEVC_REFS_MAX]; // by the current picture
};

struct hevc_sps {
    enum hevc_set_state state;
    bool chroma, amp, sao, pcm, long_term_refs, temporal_mvp;
    int width, height; // luma samples
    int bit_depth[2];  // of luma and chroma
    int poc_lsb_bits;
    int min_cb_log2, ctb_log2, min_tb_log2, max_tb_log2;
    int transform_depth_inter, transform_depth_intra; // max_transform_hierarchy_depth
    int pcm_bit_depth[2], pcm_min_log2, pcm_max_log2;
    int rps_count, long_term_count;
    struct hevc_rps rps[HEVC_RPS_MAX];
    bool long_term_used[32];
    int ctb_columns, ctb_rows;
};

struct hevc_pps {
    enum hevc_set_state state;
    int sps_id;
    bool dependent_slices, output_flag, sign_data_hiding, cabac_init, transform_skip, qp_delta;
    bool chroma_qp_offsets, weighted_pred, weighted_bipred, transquant_bypass, tiles, wavefront;
    bool filter_across_slices, deblocking_override, deblocking_disabled, lists_modification;
    bool header_extension, tiles_uniform;
    int extra_header_bits, refs[2], init_qp, qp_delta_depth;
    int tile_columns, tile_rows;
    uint16_t tile_width[HEVC_TILE_COLUMNS_MAX], tile_height[HEVC_TILE_ROWS_MAX]; // not uniform
};

struct hevc_parameter_sets {
    struct hevc_sps sps[HEVC_SPS_MAX];
    struct hevc_pps pps[HEVC_PPS_MAX];
};

struct hevc_slice_header {
    const struct hevc_sps *sps;
    const struct hevc_pps *pps;
    bool first, dependent; // slice segment of the picture; of a slice
    int address;           // slice_segment_address: CTBs in raster order
    enum hevc_slice_type type;
    bool sao_luma, sao_chroma, mvd_l1_zero, cabac_init;
    int refs[2]; // num_ref_idx_active
    int merge_candidates, qp;
    size_t data_at; // where the slice segment data begins in the unit's rbsp
};

// Takes an SPS or PPS over; others do nothing. As in libavcodec, a set that cannot be read does not
// replace the one before it, nor does a PPS whose SPS is not there. `rbsp`: of the unit, with its
// header.
void hevc_parameter_sets_take(struct hevc_parameter_sets *, int unit_type, const uint8_t *rbsp,
                              size_t size);

// Whether a unit is an SPS of the base layer that does not end within its sets of reference
// pictures, nor has values ahead of their end that no stream has. It may be of any profile.
bool hevc_sps_is_readable(const struct nal *);

// Reads the header of a slice segment. `*header` holds the preceding slice segment's, of which a
// dependent one keeps most. -ENOENT: its parameter sets are not there; -ENOTSUP: they have tools of
// another profile; -EBADMSG: no header can be so.
int hevc_slice_header_read(struct hevc_slice_header *header, const struct hevc_parameter_sets *,
                           int unit_type, const uint8_t *rbsp, size_t size);

#endif
