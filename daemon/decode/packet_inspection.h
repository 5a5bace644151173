// Finds damage in packets that libavcodec does not report: lost pictures of H.264, and hashes of
// pictures of H.265. One thread uses it; zeroed except `parameters` and `reads_hashes`, it is
// ready.
#ifndef FRAMED_DAEMON_DECODE_PACKET_INSPECTION_H
#define FRAMED_DAEMON_DECODE_PACKET_INSPECTION_H

#include "daemon/decode/h264_loss.h"
#include "daemon/decode/packet_history.h"
#include "daemon/decode/recovery.h"

struct AVCodecParameters;
struct AVPacket;

struct packet_inspection {
    const struct AVCodecParameters *parameters; // owned by the caller
    struct h264_loss h264_loss;
    struct recovery recovery;
    int highest_layer; // the highest temporal layer of H.265 so far
    bool reads_hashes; // of H.265
};

void packet_inspection_begin(struct packet_inspection *); // another stream, or another place in it
void packet_inspection_finish(struct packet_inspection *);
// Takes every packet, in order. Marks it as damaged if a reference never came or if it is noise,
// and sets `whole_from`.
void packet_inspection_order(struct packet_inspection *, const struct AVPacket *,
                             struct packet_info *);
// Returns true if the packet marks its picture as unused by others: H.264 and H.265.
bool packet_inspection_disposable(struct packet_inspection *, const struct AVPacket *);
// Sets the hash of a packet that will be decoded, and whether a reference of it was lost.
void packet_inspection_content(struct packet_inspection *, const struct AVPacket *,
                               struct packet_info *);

#endif
