// slice_segment_data() of H.265 (ITU-T H.265, 7.3.8): walks through its syntax and keeps no
// picture. After a bit error the arithmetic decoder is out of step: then a substream does not end
// where its bytes do, or a value is out of range.
#ifndef FRAMED_DAEMON_DECODE_HEVC_SLICE_H
#define FRAMED_DAEMON_DECODE_HEVC_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/bitstream/hevc_headers.h"
#include "daemon/decode/hevc_cabac.h"

enum { HEVC_CTB_MAX = 64 };

// What a coding unit leaves for those on its right and below, by 8 samples.
struct hevc_neighbour {
    uint8_t depth : 2, skipped : 1;
};

struct hevc_slice {
    struct hevc_slice_header header;
    struct hevc_cabac cabac;
    struct hevc_contexts contexts;
    struct hevc_contexts row; // TableStateIdxWpp
    struct hevc_contexts end; // TableStateIdxDs: of the preceding slice segment
    int begin;                // SliceAddrRs, as a CTB in tile scan
    int column_begin[HEVC_TILE_COLUMNS_MAX + 1], row_begin[HEVC_TILE_ROWS_MAX + 1]; // of tiles
    int column, line;                                                               // the tile's
    int x, y;                             // of the CTB, in CTBs
    bool left_available, above_available; // CTBs: in the picture, the slice, the tile
    bool wrong;                           // a value out of range
    bool qp_delta_coded, transquant_bypass;
    struct hevc_neighbour left[HEVC_CTB_MAX / 8], above[HEVC_SIZE_MAX / 8];
    uint8_t mode_left[HEVC_CTB_MAX / 4], mode_above[HEVC_CTB_MAX / 4]; // IntraPredModeY
};

// Of a slice segment whose header was read to `header`: parses its data. Returns the number of
// CTBs, in tile scan, up to the segment's end; -EBADMSG: it has errors. `*first`: those before it.
int hevc_slice_parse(struct hevc_slice *, const uint8_t *rbsp, size_t size, int *first);

#endif
