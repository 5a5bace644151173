// What a packet of H.264 or H.265 says of its picture's place in the output order: by libavcodec's
// parser, and by the NAL units ahead of its first slice. One thread uses a reader.
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
    bool known; // poc
    int poc;
    enum order_start start;
    bool random_access; // H.265, IRAP
    bool reference;     // others may be made from it
    bool field;         // H.264: one of two that are one picture, or broken
    bool broken;        // H.264: the slice header could not be read to its end
    bool intra;         // all its slices are; H.265: known of pictures of one slice alone
    // Its SEI recovery point: recovery_frame_cnt of H.264, recovery_poc_cnt of H.265.
    int recovery;       // NO_RECOVERY: it has none
    bool one_reference; // H.264: no picture of its sequence refers to more than the last one
    bool in_order;      // pictures of its sequence are shown as they are decoded
    bool may_be_hidden; // H.265: it may say that it is not to be shown
    bool new_sequence;  // parameters of the sequence came that differ from the last ones
};

// -ENOTSUP: neither H.264 nor H.265; -ENOMEM.
int picture_place_open(struct picture_place_reader **ret, const struct AVCodecParameters *);
void picture_place_close(struct picture_place_reader *); // accepts NULL
// To be called for each packet, in decoding order: POC counts on from the packet before.
struct picture_place picture_place_read(struct picture_place_reader *, const struct AVPacket *);

#endif
