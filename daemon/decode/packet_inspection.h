// Damage that a packet shows and libavcodec does not report: lost pictures of H.264, and hashes of
// pictures of H.265. One thread uses it; zeroed but for `parameters` it is ready.
#ifndef FRAMED_DAEMON_DECODE_PACKET_INSPECTION_H
#define FRAMED_DAEMON_DECODE_PACKET_INSPECTION_H

#include "daemon/decode/h264_loss.h"
#include "daemon/decode/packet_history.h"
#include "daemon/decode/recovery.h"

struct AVCodecParameters;
struct AVPacket;

struct packet_inspection {
    const struct AVCodecParameters *parameters; // the owner's
    struct h264_loss h264_loss;
    struct recovery recovery;
    int highest_layer; // temporal, of H.265, that came so far
};

void packet_inspection_begin(struct packet_inspection *); // another stream, or another place in it
void packet_inspection_finish(struct packet_inspection *);
// Takes every packet, in order. Marks it as damaged if a picture that it is made from never came or
// if it is noise, and fills in `whole_from`.
void packet_inspection_order(struct packet_inspection *, const struct AVPacket *,
                             struct packet_info *);
// Whether no other picture is made from a packet's, by the packet itself: of H.264 and H.265.
bool packet_inspection_disposable(struct packet_inspection *, const struct AVPacket *);
// For a packet that will be decoded: fills in its hash, and whether a picture that it is made from
// was lost before it.
void packet_inspection_content(struct packet_inspection *, const struct AVPacket *,
                               struct packet_info *);

#endif
