// Reads the place of a picture of H.264 or H.265 in the output order from its packet: by
// libavcodec's parser, and by the NAL units up to its first slice. One thread uses a reader.
#ifndef FRAMED_DAEMON_DECODE_PICTURE_PLACE_H
#define FRAMED_DAEMON_DECODE_PICTURE_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "daemon/decode/output_order.h"

struct AVCodecParameters;
struct AVPacket;
struct picture_place_reader;

enum { NO_RECOVERY = INT_MIN };

struct picture_place {
    bool known; // poc is valid
    int poc;
    enum order_start start;
    bool random_access; // H.265, IRAP
    bool reference;     // others may refer to it
    bool field;         // H.264: one of the two fields of a picture, or broken
    bool broken;        // H.264: the slice header could not be read to its end
    bool intra;         // in all slices; H.265: only known for pictures of one slice
    // Its SEI recovery point: recovery_frame_cnt of H.264, recovery_poc_cnt of H.265.
    int recovery;       // NO_RECOVERY: it has none
    bool one_reference; // H.264: pictures of its sequence refer to the last one at most
    bool in_order;      // pictures of its sequence are shown in decoding order
    bool may_be_hidden; // H.265: it may be marked as not shown
    bool new_sequence;  // its SPS differs from the last one
};

// -ENOTSUP: neither H.264 nor H.265; -ENOMEM.
int picture_place_open(struct picture_place_reader **ret, const struct AVCodecParameters *);
void picture_place_close(struct picture_place_reader *); // accepts NULL
// Call for each packet, in decoding order: POC counts on from the packet before.
struct picture_place picture_place_read(struct picture_place_reader *, const struct AVPacket *);

#endif
