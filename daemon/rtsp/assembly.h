// Assembles access units from packets, for the depacketizers of all codecs, which classify each
// piece. Tracks the open unit's contents, its missing packets and its end. Several complete units
// may wait until they are taken.
#ifndef FRAMED_DAEMON_RTSP_ASSEMBLY_H
#define FRAMED_DAEMON_RTSP_ASSEMBLY_H

#include "daemon/rtsp/access_unit.h"
#include "daemon/rtsp/picture_end.h"

struct rtp_packet;

enum {
    ASSEMBLY_UNITS = 8,            // the open one, and as many as one packet can complete
    ASSEMBLY_BYTES_MAX = 32 << 20, // limit of one unit: bytes beyond it are dropped
};

enum assembly_piece {
    PIECE_SKIPPED,      // useless, left out
    PIECE_AHEAD,        // precedes a picture's slices: a parameter set, a delimiter
    PIECE_PREFIX,       // prefix NAL unit of the next slice
    PIECE_FIRST,        // first slice of a picture
    PIECE_FIRST_FIELD,  // first slice of a field whose other field may follow
    PIECE_SECOND_FIELD, // first slice of that other field
    PIECE_NEXT,         // another slice of the picture
    PIECE_BEHIND,       // belongs to the previous picture
    PIECE_ANYWHERE,
};

struct assembly_slice {
    bool disposable;    // no picture references it
    bool random_access; // belongs to an IDR or IRAP picture
    bool intra;
};

struct assembly_unit {
    struct access_unit unit; // data, bytes and keyframe are set when it is complete
    uint8_t *data;           // reused by the next unit in this place
    size_t room, bytes;
    bool used;     // the place is taken
    bool begun;    // has a piece
    bool picture;  // has a slice, complete or not
    size_t head;   // bytes before the first slice
    int slices;    // complete ones
    bool recovery; // contains a recovery point
    bool random_access, inter;
    bool marked; // a marker followed the last slice
    bool awaits; // has one field of a frame; the other may follow
    // Offset of the last pieces if they precede a slice: that slice decides whether they belong to
    // this unit. 0: none.
    size_t tail;
    bool tail_sets, tail_recovery;
    struct picture_end_signs signs;
};

enum assembly_end { ENDED_BY_NEXT, ENDED_BY_MARKER, ENDED_BY_SILENCE, ENDED_BY_FLUSH };

struct assembly {
    struct picture_end_verdict *verdict, own;
    struct assembly_unit units[ASSEMBLY_UNITS];
    struct assembly_unit *open;
    struct assembly_unit *complete[ASSEMBLY_UNITS]; // the oldest first
    int n_complete;
    struct assembly_unit *given; // returned to the caller, released at the next call
    // Hook of the codec, or NULL. Called one or more times for a complete unit. May change its
    // bytes in place and its flags; if it sets `slices` to 0, the picture is lost.
    void (*finish)(void *state, struct assembly_unit *);
    void *finish_state;
    bool incomplete; // the open unit's last piece is incomplete
    bool no_memory;  // an allocation failed since the owner cleared this
    // State of the last packet:
    bool begun; // a packet was received
    uint32_t timestamp;
    int64_t received_ns;
    bool hole;       // packets are missing; the next piece decides which unit they belong to
    bool hole_whole; // they did not cut off the end of a reference picture
    // State of the last completed unit:
    bool ended; // it exists, and no slice has followed
    enum assembly_end end;
    bool ended_marked;
    uint32_t ended_timestamp;
    int64_t ended_received_ns; // INT64_MIN: none, or packets are missing since then
};

// The assembly is zeroed before. `verdict` NULL: starts with nothing learnt.
void assembly_open(struct assembly *, struct picture_end_verdict *verdict);
void assembly_close(struct assembly *);
// Releases the unit that assembly_take returned.
void assembly_release(struct assembly *);
int assembly_take(struct assembly *, int64_t now_ns, struct access_unit *ret); // 0 or -EAGAIN
// Returns when a unit can be taken. INT64_MIN: now; a later time: silence ends the open unit then;
// INT64_MAX: silence does not end it.
int64_t assembly_due_ns(const struct assembly *);
void assembly_flush(struct assembly *); // ends the open unit: the stream is over

// --- for each packet: assembly_packet, then its pieces, then assembly_marker where it is marked.

// Takes the packet's timestamp and the loss before it. Ends the open unit if the timestamp is new.
// The caller has removed incomplete pieces that this packet cannot continue.
void assembly_packet(struct assembly *, const struct rtp_packet *);
// Returns true if this packet cannot continue an incomplete piece.
bool assembly_breaks(const struct assembly *, const struct rtp_packet *);
// Returns room for `bytes` behind the open unit's bytes; the caller then counts them. NULL: no
// memory, or the unit would be too large.
uint8_t *assembly_room(struct assembly *, size_t bytes);
// Classifies the open unit's bytes from `at` on as a piece of this kind, or the beginning of one.
// If the piece begins another unit, ends the open one and moves the bytes there. Returns their new
// offset; SIZE_MAX: left out, and the caller removes the bytes unless `no_memory` is set.
size_t assembly_piece(struct assembly *, size_t at, enum assembly_piece);
void assembly_goes_on(struct assembly *); // the present packet continues the last piece
void assembly_slice(struct assembly *, const struct assembly_slice *); // a slice is complete
void assembly_sets(struct assembly *);     // a parameter set is complete
void assembly_recovery(struct assembly *); // a recovery point SEI is complete
void assembly_damage(struct assembly *);   // a part of the open unit's picture is missing
void assembly_marker(struct assembly *); // the packet has a marker, and its last piece is complete

#endif
