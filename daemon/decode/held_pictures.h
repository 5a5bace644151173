// Makes a context of H.264 or H.265 give out each picture as soon as it is decoded. libavcodec
// holds pictures back until the stream's parameters exclude others ahead of them, and pictures of
// some devices are only available in its output: NVDEC's surfaces are mapped there.
//
// In H.264 an end of sequence makes libavcodec give out its next held picture, and changes nothing
// else. In H.265 the number of reordered pictures is set to 0 in the SPS; it does not affect
// decoding. One thread uses it.
#ifndef FRAMED_DAEMON_DECODE_HELD_PICTURES_H
#define FRAMED_DAEMON_DECODE_HELD_PICTURES_H

struct AVCodecContext;
struct AVPacket;
struct held_pictures;

// Edits the extradata of the context, which is not open yet. Returns 0 or -ENOMEM.
int held_pictures_open(struct held_pictures **ret, struct AVCodecContext *);
void held_pictures_close(struct held_pictures *); // accepts NULL
// Returns the packet to send in place of this one, valid until the next call; NULL: no memory.
const struct AVPacket *held_pictures_packet(struct held_pictures *, const struct AVPacket *);
// H.264, between two frames: requests the next picture. Returns as avcodec_send_packet.
int held_pictures_ask(struct held_pictures *, struct AVCodecContext *);
// H.265: returns how many pictures may be decoded ahead of one shown before them, by the last SPS.
int held_pictures_depth(const struct held_pictures *);

#endif
