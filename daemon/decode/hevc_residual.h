// residual_coding() of H.265 (ITU-T H.265, 7.3.8.11): the coefficients of a transform block, read
// and not kept.
#ifndef FRAMED_DAEMON_DECODE_HEVC_RESIDUAL_H
#define FRAMED_DAEMON_DECODE_HEVC_RESIDUAL_H

#include <stdbool.h>

#include "daemon/decode/hevc_cabac.h"

enum hevc_scan { HEVC_SCAN_DIAGONAL, HEVC_SCAN_HORIZONTAL, HEVC_SCAN_VERTICAL }; // scanIdx

struct hevc_block {
    int log2; // of its size: 2 to 5
    bool chroma;
    enum hevc_scan scan; // HEVC_SCAN_DIAGONAL where log2 > 3
    bool hides_signs, may_skip_transform;
};

// False: a coefficient is out of range.
bool hevc_residual_parse(struct hevc_cabac *, struct hevc_contexts *, const struct hevc_block *);

#endif
