// NAL unit types and the SPS of H.265 (ITU-T H.265, 7.3). Accepts any bytes.
#ifndef FRAMED_DAEMON_BITSTREAM_HEVC_HEADERS_H
#define FRAMED_DAEMON_BITSTREAM_HEVC_HEADERS_H

#include <stdbool.h>

#include "daemon/bitstream/nal.h"

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

// Returns true if a unit is an SPS of the base layer, of any profile, that is complete to the end
// of its reference picture sets and contains only values that the standard allows there.
bool hevc_sps_is_readable(const struct nal *);

#endif
