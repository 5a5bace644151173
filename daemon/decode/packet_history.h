// The packets of one stream, in decoding order, with what is known of each.
//
// Of the last PACKETS_KNOWN packets the facts are kept, to be joined to their pictures. The newest
// of them are kept themselves, if the owner wants it: from a keyframe on whose picture was given
// out, since in presentation order nothing after such a picture needs anything before it. Another
// decoder can carry on from there.
//
// One packet is one picture: so libavformat's parsers cut a stream. Serial numbers count both.
//
// One thread uses a history; zeroed it is ready but for packet_history_begin.
#ifndef FRAMED_DAEMON_DECODE_PACKET_HISTORY_H
#define FRAMED_DAEMON_DECODE_PACKET_HISTORY_H

#include "daemon/decode/corruption.h"
#include "daemon/decode/frame.h"
#include "daemon/decode/picture_hash.h"
#include "daemon/input/demux.h"

struct AVFrame;
struct AVCodecContext;

enum {
    PACKETS_KNOWN = 512,    // more than are kept and a decoder holds together
    PACKETS_KEPT_MAX = 300, // a usual distance of keyframes is up to 250
};

struct packet_info {
    int64_t serial; // from 1
    int64_t received_ns, capture_ns, pts_ns;
    bool capture_clock, damaged;
    bool guessed; // so is pts_ns
    struct picture_hash hash;
    bool keyframe;        // as the demuxer says
    bool reference_lost;  // pictures before it are missing that it may refer to
    bool lacks_reference; // the same, and libavcodec will not report it
    bool waited;          // the demux waited for it
    int64_t whole_from;   // as recovery_packet returns it
    bool skipped;         // no decoder is to get it
    bool unskipped;       // it was skipped, and the decoder has yet to get it
    bool settled;         // its picture was given out or counted, or there is none
    uint8_t given;        // pictures that came of it: 1, but for streams that break the rule
    uint8_t to_repeat;    // of these, how many a decoder that begins anew has yet to give again
    struct AVPacket *av;  // private: allocated once, unreferenced where the packet is not kept
};

struct packet_history {
    struct packet_info info[PACKETS_KNOWN]; // a ring, by serial
    int64_t first, serial; // of the stream's first packet since it began anew, and the last
    int64_t passed;        // the last packet, in decoding order, that has had its picture
    int64_t kept;          // the oldest that is kept; all after it are; serial + 1: none
    int64_t replay;        // the next that the present decoder is to get again; serial + 1: none
    bool whole;            // nothing that was not given out needs a packet before `kept`
    int64_t last_pts_ns, last_received_ns; // of the last picture
    bool last_guessed;                     // so was last_pts_ns
    int64_t interval_ns; // between the last two pictures in a row that were not guessed; 0: unknown
};

void packet_history_begin(struct packet_history *); // a new stream, or another place in it
void packet_history_finish(struct packet_history *);

// The next packet. With `keep` it is kept, behind those that are; with none before it only if it is
// a keyframe. Where there is no room, and without `keep`, those before it are dropped. 0 or
// -ENOMEM.
int packet_history_add(struct packet_history *, const struct packet *, bool keep);
void packet_history_drop(struct packet_history *);          // keeps no packet that came so far
bool packet_history_keeps(const struct packet_history *);   // any packet
bool packet_history_is_full(const struct packet_history *); // the next packet drops all
// Keeps none of the packets if the oldest came before `received_ns`.
void packet_history_drop_stale(struct packet_history *, int64_t received_ns);
// That of a packet, or the last one's where it is not known.
struct packet_info *packet_history_info(struct packet_history *, int64_t serial);
// Returns what is known of a picture of packet libav_serial(frame), except its source's size
// and its epoch, and counts the picture as given out.
struct frame_info packet_history_picture(struct packet_history *, const struct AVCodecContext *,
                                         const struct AVFrame *, struct corruption_picture *);
bool packet_history_is_keyframe(struct packet_history *, int64_t serial); // as the demuxer says
// That picture was a keyframe: packets before it need not be kept.
void packet_history_keyframe(struct packet_history *, int64_t serial);

// --- another decoder carries on
// It begins with the oldest packet that is kept. Pictures given out are not to be given again.
void packet_history_rewind(struct packet_history *);
bool packet_history_replays(const struct packet_history *);
// The next packet that the decoder has not got, valid until the next packet_history_add; NULL:
// none.
const struct AVPacket *packet_history_next(struct packet_history *, int64_t *serial);
// Whether that picture was given out before the rewind: once for each that was.
bool packet_history_repeats(struct packet_history *, int64_t serial);
// The packets at the end that were skipped are not any more: the decoder gets them before those to
// come. Pictures that are shown ahead of both the next packet's, at pts_ns, and the last of theirs
// are not given out. False, and all stays: they are not all kept.
bool packet_history_unskip(struct packet_history *, int64_t pts_ns);
// How many of the last `reach` packets before those that are kept a picture is still due of;
// settles them.
int packet_history_missing(struct packet_history *, int reach);

#endif
