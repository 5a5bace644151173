// The packets of one stream, in decoding order, with their facts.
//
// The facts of the last PACKETS_KNOWN packets are kept, to be joined to their pictures. If the
// owner requests it, the newest packets themselves are kept too, from a keyframe whose picture was
// given out: in presentation order nothing after such a picture needs anything before it. Another
// decoder can carry on from there.
//
// One packet is one picture, as libavformat's parsers split a stream. Serial numbers count both.
//
// One thread uses a history; zeroed, it only needs packet_history_begin.
#ifndef FRAMED_DAEMON_CODEC_PACKET_HISTORY_H
#define FRAMED_DAEMON_CODEC_PACKET_HISTORY_H

#include "daemon/codec/frame.h"
#include "daemon/codec/packet.h"
#include "daemon/source/demux.h"

struct AVFrame;
struct AVCodecContext;

enum {
    PACKETS_KNOWN = 512,    // more than are kept and held by a decoder together
    PACKETS_KEPT_MAX = 300, // keyframes are usually at most 250 apart
};

struct packet_info {
    struct packet packet; // av: private; allocated once, unreferenced if the packet is not kept
    struct packet_facts facts;
    bool damaged;
    bool lacks_reference; // pictures before it, perhaps references, are missing, and libavcodec
                          // will not report it
    bool skipped;         // no decoder gets it
    bool done;            // its picture was given out or counted, or there is none
    uint8_t given;        // pictures given out: 1, except in streams that break the rule
    uint8_t to_repeat;    // of these, pictures that a new decoder has yet to repeat
};

struct packet_history {
    struct packet_info info[PACKETS_KNOWN]; // a ring, by serial
    int64_t first, serial; // of the first packet since the last beginning, and of the last one
    int64_t passed;        // the last packet, in decoding order, whose picture came
    int64_t kept;          // the oldest kept packet; all after it are kept; serial + 1: none
    int64_t replay;        // the next to send again to the present decoder; serial + 1: none
    bool whole;            // no picture still to come needs a packet before `kept`
    int64_t last_pts_ns, last_received_ns; // of the last picture
    bool last_guessed;                     // last_pts_ns was a guess
    int64_t interval_ns; // between the last two consecutive pictures without a guess; 0: unknown
};

void packet_history_begin(struct packet_history *); // a new stream, or another place in it
void packet_history_finish(struct packet_history *);

// Adds the next packet, whose serial is in its facts. With `keep` keeps it after those already
// kept, or as the first one if it is a keyframe. Drops earlier packets if there is no room, and
// without `keep`. Returns 0 or -ENOMEM.
int packet_history_add(struct packet_history *, const struct packet *, const struct packet_facts *,
                       bool keep);
void packet_history_drop(struct packet_history *);          // drops all packets so far
bool packet_history_keeps(const struct packet_history *);   // any packet
bool packet_history_is_full(const struct packet_history *); // the next packet drops all
// Drops all packets if the oldest came before `received_ns`.
void packet_history_drop_stale(struct packet_history *, int64_t received_ns);
// Returns the packet's entry, or the last packet's if it is unknown.
struct packet_info *packet_history_info(struct packet_history *, int64_t serial);
// Returns the facts of a picture of packet libav_serial(frame), except its source's size and its
// epoch. `harmed`: see corruption_withholds. Counts the picture as given out.
struct frame_info packet_history_picture(struct packet_history *, const struct AVCodecContext *,
                                         const struct AVFrame *, bool *harmed);
// Call when that picture was a keyframe: packets before it need not be kept.
void packet_history_keyframe(struct packet_history *, int64_t serial);

// --- another decoder carries on
// Restarts at the oldest kept packet. Pictures already given out are not given out again.
void packet_history_rewind(struct packet_history *);
bool packet_history_replays(const struct packet_history *);
// Returns the next packet to send to the decoder, valid until the next packet_history_add; NULL:
// none.
struct packet_info *packet_history_next(struct packet_history *);
// Returns true if that picture was given out before the rewind, once for each such picture.
bool packet_history_repeats(struct packet_history *, int64_t serial);
// Revives the skipped packets at the end: the decoder gets them before later ones. Their pictures
// are not given out if shown ahead of both the next packet's, at pts_ns, and the last of their own.
// Returns false, and changes nothing, if not all of them are kept.
bool packet_history_unskip(struct packet_history *, int64_t pts_ns);
// Returns how many of the last `reach` packets before the kept ones still miss their picture, and
// settles them.
int packet_history_missing(struct packet_history *, int reach);

#endif
