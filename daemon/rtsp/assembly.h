// The access unit that is being put together from packets: what it consists of, what is missing in
// it, and when it ends. Several may be complete until they are taken. For the depacketizers of all
// codecs: they say of each piece what it is.
#ifndef FRAMED_DAEMON_RTSP_ASSEMBLY_H
#define FRAMED_DAEMON_RTSP_ASSEMBLY_H

#include "daemon/rtsp/access_unit.h"
#include "daemon/rtsp/picture_end.h"

struct rtp_packet;

enum {
    ASSEMBLY_UNITS = 8,            // the open one, and those that a packet can complete
    ASSEMBLY_BYTES_MAX = 32 << 20, // of a unit: what is more is dropped
};

enum assembly_piece {
    PIECE_SKIPPED,      // of no use: it is left out
    PIECE_AHEAD,        // stands ahead of a picture's slices: a parameter set, a delimiter
    PIECE_PREFIX,       // of the slice behind it
    PIECE_FIRST,        // the first slice of a picture,
    PIECE_FIRST_FIELD,  // of a field whose other field may follow,
    PIECE_SECOND_FIELD, // of the other field
    PIECE_NEXT,         // another slice of the picture
    PIECE_BEHIND,       // belongs to the picture before it
    PIECE_ANYWHERE,
};

struct assembly_slice {
    bool disposable;    // nothing refers to it
    bool random_access; // of an IDR or IRAP picture
    bool intra;
};

struct assembly_unit {
    struct access_unit unit; // data, bytes and keyframe are set when it is complete
    uint8_t *data;           // kept for the next unit in this place
    size_t room, bytes;
    bool used;     // the place is taken
    bool begun;    // a piece came
    bool picture;  // a slice came, whole or not
    size_t head;   // bytes ahead of the first slice
    int slices;    // whole ones
    bool recovery; // a recovery point begins here
    bool random_access, inter;
    bool marked; // behind the last slice
    bool awaits; // one field of a frame came: its other one may follow
    // Where pieces begin that stand ahead of a slice, which tells whether they and it are of this
    // unit; 0: there are none.
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
    struct assembly_unit *given; // to the caller, who has read it when he calls again
    // Of the codec; NULL: none. Called with a unit that is complete, once or more. May change its
    // bytes in place and its flags; without slices the unit is lost.
    void (*finish)(void *state, struct assembly_unit *);
    void *finish_state;
    bool incomplete; // the open unit's last piece is
    bool no_memory;  // since the owner cleared it
    // Of the last packet:
    bool begun; // there was one
    uint32_t timestamp;
    int64_t received_ns;
    bool hole;       // packets are missing, and the next piece will tell whose they are
    bool hole_whole; // no picture that others refer to ended with them
    // Of the unit that was completed last:
    bool ended; // there is one, and nothing has come since
    enum assembly_end end;
    bool ended_marked;
    uint32_t ended_timestamp;
    int64_t ended_received_ns; // INT64_MIN: packets are missing since
};

// Zeroed before. `verdict` NULL: one that begins anew.
void assembly_open(struct assembly *, struct picture_end_verdict *verdict);
void assembly_close(struct assembly *);
// What the caller was given has been read.
void assembly_release(struct assembly *);
int assembly_take(struct assembly *, int64_t now_ns, struct access_unit *ret); // 0 or -EAGAIN
// When there is a unit to take: INT64_MIN: now; else silence ends the open one. INT64_MAX: it does
// not.
int64_t assembly_due_ns(const struct assembly *);
void assembly_flush(struct assembly *); // the stream ends

// --- for each packet: assembly_packet, then its pieces, then assembly_marker where it is marked.

// Its stamp and what is missing before it. Ends the open unit where the stamp is a new one. Pieces
// that are not complete have been taken away before, if this packet cannot go on with them.
void assembly_packet(struct assembly *, const struct rtp_packet *);
// Whether such pieces cannot be completed by this packet.
bool assembly_breaks(const struct assembly *, const struct rtp_packet *);
// Room behind the bytes of the open unit, which the caller then counts; NULL: no memory, or the
// unit would be too large.
uint8_t *assembly_room(struct assembly *, size_t bytes);
// The bytes of the open unit from `at` on are a piece of this kind, or the beginning of one. Ends
// the open unit where it begins another, which they are moved to. Returns where they are then;
// SIZE_MAX: the piece is left out, and its bytes are gone.
size_t assembly_piece(struct assembly *, size_t at, enum assembly_piece);
void assembly_goes_on(struct assembly *); // the present packet goes on with the last piece
void assembly_slice(struct assembly *, const struct assembly_slice *); // one is whole
void assembly_sets(struct assembly *);                                 // a parameter set is whole,
void assembly_recovery(struct assembly *); // the message of a recovery point
void assembly_damage(struct assembly *);   // something of the open unit's picture is missing
void assembly_marker(struct assembly *);   // the packet is marked and its last piece complete

#endif
