// Damage that a packet shows and libavcodec does not report: lost pictures of H.264, and hashes of
// pictures of H.265. One thread uses it; zeroed but for `parameters` it is ready.
#ifndef FRAMED_DAEMON_DECODE_PACKET_INSPECTION_H
#define FRAMED_DAEMON_DECODE_PACKET_INSPECTION_H

#include "daemon/decode/h264_loss.h"
#include "daemon/decode/packet_history.h"

struct AVCodecParameters;
struct AVPacket;

struct packet_inspection {
    const struct AVCodecParameters *parameters; // the owner's
    struct h264_loss h264_loss;
    int highest_layer; // temporal, of H.265, that came so far
};

void packet_inspection_begin(struct packet_inspection *); // another stream, or another place in it
// Of every packet, in order: whether a picture that it is made from never came, or it is noise.
bool packet_inspection_order(struct packet_inspection *, const struct AVPacket *);
// Whether no other picture is made from a packet's, by the packet itself: of H.264 and H.265.
bool packet_inspection_disposable(struct packet_inspection *, const struct AVPacket *);
// For a packet that will be decoded: fills in its hash, and whether a picture that it is made from
// was lost before it.
void packet_inspection_content(struct packet_inspection *, const struct AVPacket *,
                               struct packet_info *);

#endif
