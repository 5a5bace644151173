// What is known of a packet and has to come out with its picture. One thread uses it; zeroed it is
// ready.
#ifndef FRAMED_DAEMON_DECODE_PACKET_INFO_H
#define FRAMED_DAEMON_DECODE_PACKET_INFO_H

#include "daemon/decode/frame.h"
#include "daemon/decode/picture_hash.h"
#include "daemon/input/demux.h"

struct AVFrame;
struct AVCodecContext;

enum { FACTS_MAX = 512 }; // packets: more than a backlog and a decoder hold together

struct fact {
    int64_t serial; // of the packet, from 1
    int64_t received_ns, capture_ns;
    bool capture_clock, damaged;
    struct picture_hash hash;
    bool settled;      // its picture was given out or counted, or there is none
    uint8_t given;     // pictures that came of it: usually 1
    uint8_t forgotten; // of these, how many a decoder that begins anew has yet to give again
};

struct facts {
    struct fact fact[FACTS_MAX]; // by serial
    int64_t first, serial;       // of the stream's first packet since it began anew, and the last
    int64_t passed;              // the last packet, in decoding order, that has had its picture
    int64_t last_pts_ns, last_received_ns;
};

void facts_begin(struct facts *); // a new stream, or another place in it
void facts_packet(struct facts *, const struct packet *);
// That of a packet, or the last one's where it is not known.
struct fact *facts_of(struct facts *, int64_t serial);
// What is known of a picture, but its source's size and its epoch.
struct frame_info facts_picture(struct facts *, const struct AVCodecContext *,
                                const struct AVFrame *);
// Another decoder begins with packet `from`: pictures given out are not to be given again.
void facts_replay(struct facts *, int64_t from);
// Whether that picture was given out before the replay: once for each that was.
bool facts_repeats(struct facts *, int64_t serial);
// How many of the last `reach` packets before `before` a picture is still due of; settles them.
int facts_missing(struct facts *, int64_t before, int reach);

#endif
