// Makes a context of H.264 or H.265 give each picture out as soon as it is decoded. libavcodec
// holds pictures back until none can come ahead of them by the stream's parameters, and only its
// output holds the pictures of some devices: NVDEC's surfaces are mapped there.
//
// In H.264 an end of sequence makes libavcodec give out the next picture that it holds, and changes
// nothing else. In H.265 the number of pictures that may be reordered is set to 0 in the SPS; no
// picture is decoded by it. One thread uses it.
#ifndef FRAMED_DAEMON_DECODE_HELD_PICTURES_H
#define FRAMED_DAEMON_DECODE_HELD_PICTURES_H

struct AVCodecContext;
struct AVPacket;
struct held_pictures;

// The context is not open yet; its extradata is edited. Returns 0 or -ENOMEM.
int held_pictures_open(struct held_pictures **ret, struct AVCodecContext *);
void held_pictures_close(struct held_pictures *); // accepts NULL
// Returns the packet to send instead of this one, valid until the next call; NULL: out of memory.
const struct AVPacket *held_pictures_packet(struct held_pictures *, const struct AVPacket *);
// H.264, between two frames: asks for the next picture. Returns as avcodec_send_packet.
int held_pictures_ask(struct held_pictures *, struct AVCodecContext *);
// H.265: how many pictures may be decoded ahead of one that is shown before them, by the last SPS.
int held_pictures_depth(const struct held_pictures *);

#endif
