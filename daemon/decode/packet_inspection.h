// What a packet says of damage that libavcodec will not tell: of lost pictures of H.264, and of bit
// errors in H.265. One thread uses it; zeroed but for `parameters` it is ready.
#ifndef FRAMED_DAEMON_DECODE_PACKET_INSPECTION_H
#define FRAMED_DAEMON_DECODE_PACKET_INSPECTION_H

#include "daemon/decode/h264_loss.h"
#include "daemon/decode/packet_history.h"

struct AVCodecParameters;
struct AVPacket;
struct slice_thread;

struct packet_inspection {
    const struct AVCodecParameters *parameters; // the owner's
    struct h264_loss h264_loss;
    struct slice_thread *slices; // NULL: no packet was checked yet
    bool checks_slices;          // of the packet at hand
    int highest_layer;           // temporal, of H.265, that came so far
    bool logged_profile;         // that slice_check does not know it
};

void packet_inspection_begin(struct packet_inspection *); // another stream, or another place in it
void packet_inspection_finish(struct packet_inspection *);
// Of every packet, in order: whether a picture that it is made from never came, or it is noise.
bool packet_inspection_order(struct packet_inspection *, const struct AVPacket *);
// Whether no other picture is made from a packet's, by the packet itself: of H.264 and H.265.
bool packet_inspection_disposable(struct packet_inspection *, const struct AVPacket *);
// Of a packet that will be decoded: fills in its hash, and whether a picture that it is made from
// was lost before it. Begins to look for bit errors in it, which goes on while it is decoded;
// pictures of NVDEC are not searched for them: that would take more of the CPU than all else for
// them. The packet's data stay valid until packet_inspection_end.
void packet_inspection_content(struct packet_inspection *, const struct AVPacket *, bool on_device,
                               struct packet_info *);
bool packet_inspection_end(struct packet_inspection *); // whether it has bit errors

#endif
