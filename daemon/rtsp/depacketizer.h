// Makes access units from RTP payloads: H.264 (RFC 6184), H.265 (RFC 7798), MJPEG (RFC 2435).
// Detects the end of a unit by three signals: a NAL unit that begins another unit, a new timestamp,
// a marker after a slice. Learns how reliable a camera's markers are (struct picture_end_verdict).
// Pure: the caller passes the time. One thread uses a depacketizer.
#ifndef FRAMED_DAEMON_RTSP_DEPACKETIZER_H
#define FRAMED_DAEMON_RTSP_DEPACKETIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct assembly_unit;
struct depacketizer;
struct rtp_packet;
struct sdp_media;

// An access unit received over RTP: one picture and the data that belongs to it.
struct access_unit {
    // H.264 and H.265: NAL units with start codes, both fields where a frame has two; MJPEG: a JFIF
    // picture.
    const uint8_t *data;
    size_t bytes;
    uint32_t timestamp;
    int64_t received_ns, arrived_ns; // first and last packet, CLOCK_MONOTONIC
    bool keyframe;                   // IDR, IRAP, a recovery point with intra slices only, any JPEG
    bool has_sets;                   // contains parameter sets
    bool disposable; // no other picture references it (nal_ref_idc 0; sub-layer non-reference)
    bool damaged;    // one of its packets is missing
    // Missing packets before it were, or may have been, whole pictures. False if the same loss
    // damaged the picture before it and others reference that one.
    bool reference_lost;
    uint32_t lost;  // packets missing in it and before it, since the previous unit
    bool hole;      // packets are missing, perhaps an unknown number
    bool restarted; // first unit of a restarted sender
};

// --- the end of a picture: what a camera's markers are worth. Zeroed: nothing learnt. Kept over
// connections.

enum picture_end {
    PICTURE_END_LEARNING,
    PICTURE_END_MARKER,    // trusted: a picture ends with its marker
    PICTURE_END_PER_SLICE, // every slice is marked: a picture ends with its n-th marker
    PICTURE_END_NONE,      // no markers: a picture ends with silence
};

struct picture_end_verdict {
    enum picture_end end;
    int pictures;        // private from here on: number learnt, up to a limit
    int unmarked;        // pictures without a marker minus pictures with one, within limits
    int early;           // pictures until the last one that continued behind a marker is forgotten
    int markers, steady; // of the last picture; pictures in a row with that many
    int64_t gap_ns;      // longest silence inside recent pictures
    int64_t interval_ns; // mean time from picture to picture; 0: unknown
};

const char *picture_end_name(enum picture_end); // "marker", for the status
// Learns from a complete picture; ignores a damaged one.
void picture_end_learn(struct picture_end_verdict *, const struct assembly_unit *);
// Reports that the last picture continued after the marker or silence that ended it.
void picture_end_went_on(struct picture_end_verdict *, bool marked, bool silent);
// Returns true if the marker just received, already counted in the unit, ends its picture now.
bool picture_end_at_marker(const struct picture_end_verdict *, const struct assembly_unit *);
// Returns the silence that ends a picture with slices; INT64_MAX: only the next picture ends it.
int64_t picture_end_silence_ns(const struct picture_end_verdict *, const struct assembly_unit *);

// --- the depacketizer

// Reads `media` during the call. The owner keeps *verdict over connections, and the depacketizer
// updates it. Returns 0 or -ENOMEM.
int depacketizer_open(struct depacketizer **ret, const struct sdp_media *media,
                      struct picture_end_verdict *verdict);
void depacketizer_close(struct depacketizer *); // accepts NULL
// The caller has taken all complete units with depacketizer_get before.
void depacketizer_put(struct depacketizer *, const struct rtp_packet *);
// Returns the next complete unit; its data is valid until the next call of put, get or flush. Ends
// units that have waited long enough at `now_ns`. 0 or -EAGAIN.
int depacketizer_get(struct depacketizer *, int64_t now_ns, struct access_unit *ret);
// Returns when depacketizer_get has a unit without more packets. INT64_MIN: now; INT64_MAX: never.
int64_t depacketizer_due_ns(const struct depacketizer *);
void depacketizer_flush(struct depacketizer *); // completes the open unit: the stream is over

// --- for the codecs: the assembly of access units from packets. A codec appends bytes to the open
// piece, and adds the piece to its unit when it is complete; the depacketizer tracks the units'
// contents, their missing packets and their end. Several complete units may wait until they are
// taken.

enum {
    ASSEMBLY_UNITS = 8,            // the open one, and as many as one packet can complete
    ASSEMBLY_BYTES_MAX = 32 << 20, // limit of one unit: bytes beyond it are dropped
};

enum assembly_kind {
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

struct assembly_piece {
    enum assembly_kind kind;
    bool set, recovery; // a parameter set, a recovery point
    bool slice;         // a complete slice, with:
    bool disposable;    // no picture references it
    bool random_access; // belongs to an IDR or IRAP picture
    bool intra;
};

struct assembly_unit {
    struct access_unit unit; // `data` is set when it is taken, `bytes` and `keyframe` at its end
    size_t begin;            // offset in `data`
    bool begun;              // has a piece
    bool picture;            // has a slice, complete or not
    size_t head;             // bytes before the first slice
    int slices;              // complete ones
    bool recovery;           // contains a recovery point
    bool random_access, inter;
    bool awaits;         // has one field of a frame; the other may follow
    bool marked;         // a marker followed the last slice
    int markers;         // after its slices
    bool early;          // some of its packets followed a marker
    int64_t gap_ns;      // the longest silence between its packets
    int64_t interval_ns; // since the previous picture; 0: unknown
};

struct depacketizer {
    // For the owner: the stream's parameter sets so far, from the SDP or newer, with start codes,
    // for the decoder's extradata and for recordings (NULL: the codec has none); and what is wrong
    // with the stream, for people ("": nothing).
    const uint8_t *sets;
    size_t sets_bytes;
    char complaint[128];
    // Private.
    const struct depacketize_codec *codec;
    struct picture_end_verdict *verdict;
    uint8_t *data; // of all units, and of the open piece behind them
    size_t room, bytes;
    size_t piece;     // offset of the open piece; `bytes`: there is none. A codec whose data follow
                      // their piece moves it behind them.
    int64_t piece_ns; // its first packet's arrival
    int64_t gap_ns;   // the longest silence between its packets
    // The complete ones, the oldest first; the open one; and if `ahead` is set, its last pieces:
    // the next slice decides whether they belong to it or begin another unit.
    struct assembly_unit units[ASSEMBLY_UNITS + 1];
    int n_complete;
    bool ahead;
    bool given; // the first one was returned to the caller, and is released at the next call
    // State of the last packet:
    bool begun; // a packet was received
    uint32_t timestamp;
    int64_t received_ns;
    bool hole;       // packets are missing; the next piece decides which unit they belong to
    bool hole_whole; // they did not cut off the end of a reference picture
    // State of the last completed unit:
    bool ended; // it exists, and no slice has followed
    bool ended_marked, ended_silently;
    uint32_t ended_timestamp;
    int64_t ended_received_ns; // INT64_MIN: none, or packets are missing since then
};

static inline struct assembly_unit *assembly_open_unit(struct depacketizer *d)
{
    return &d->units[d->n_complete];
}

// For each packet: assembly_packet, then its pieces, then assembly_marker where it is marked.

// Takes the packet's timestamp and the loss before it. Ends the open unit if the timestamp is new.
// The caller has dropped an open piece that this packet cannot continue.
void assembly_packet(struct depacketizer *, const struct rtp_packet *);
// Appends to the open piece. Returns false if there is no memory, or the unit would be too large.
bool assembly_append(struct depacketizer *, const void *data, size_t bytes);
// Adds the first bytes of the open piece to the unit that they belong to, and ends the open unit if
// they begin another one. The rest is the open piece then. Returns false if they are left out.
bool assembly_add(struct depacketizer *, const struct assembly_piece *, size_t bytes);
void assembly_damage(struct depacketizer *); // a part of the open unit's picture is missing
void assembly_marker(struct depacketizer *); // the packet has a marker, and no piece is open

// The interface of a codec's depacketizer, whose struct begins with struct depacketizer.
struct depacketize_codec {
    size_t bytes; // size of that struct, which is zeroed before open
    void (*open)(struct depacketizer *, const struct sdp_media *);
    void (*packet)(struct depacketizer *, const struct rtp_packet *);
    void (*drop)(struct depacketizer *); // drops an open piece; NULL: there is never one
    // Called one or more times at the end of the open unit, behind which there is nothing then. May
    // change its bytes and its flags; if it sets `slices` to 0, the picture is lost. May be NULL.
    void (*finish)(struct depacketizer *, struct assembly_unit *);
};

extern const struct depacketize_codec depacketize_nal, depacketize_jpeg;

// --- the size of a JPEG picture, by the number of blocks in its scan: RTP (RFC 2435) has one byte
// for an eighth of the width and one for the height, so sides above 2040 wrap or are 0

enum { JPEG_HUFFMAN_BYTES = 420 };
extern const uint8_t jpeg_huffman[JPEG_HUFFMAN_BYTES]; // K.3 to K.6 of T.81, as one DHT segment

struct jpeg_size { // in pixels; 0: unknown
    int width, height;
};

struct jpeg_scan { // of a baseline picture with the tables above
    const uint8_t *data;
    size_t bytes;
    bool half_height;     // chroma: 4:2:0, else 4:2:2
    int restart_interval; // in MCUs; 0: none
};

// Returns true if the RTP header may have `rest` pixels for a side of `size` pixels.
bool jpeg_size_is_rest(int rest, int size);
// Finds the size of a picture by its complete scan. *ret: on entry the likely size, if any; `rest`:
// from the RTP header; `announced`: from the SDP. Returns 0; -EBADMSG: the scan cannot be read;
// -ERANGE: no size has its number of blocks, or several have; -ENOMEM.
int jpeg_size_find(struct jpeg_size *ret, const struct jpeg_scan *, struct jpeg_size rest,
                   struct jpeg_size announced);

#endif
