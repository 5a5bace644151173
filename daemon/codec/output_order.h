// The order in which decoded pictures are shown, as early as it can be determined. A decoder gives
// a picture out when the stream guarantees that no other comes ahead of it, often some packets
// after decoding it. This module uses picture order counts (POC) to find the decoded pictures that
// may be shown earlier. The decoder's own output, which comes later, overrides it. One thread uses
// it; zeroed, it only needs output_order_begin.
#ifndef FRAMED_DAEMON_CODEC_OUTPUT_ORDER_H
#define FRAMED_DAEMON_CODEC_OUTPUT_ORDER_H

#include "daemon/codec/packet.h"

struct AVFrame;

enum { OUTPUT_ORDER_PICTURES = 64 }; // tracked at once; a decoder holds back at most 16

struct order_picture {
    int64_t serial; // above 0
    int poc;        // unique within its sequence
    enum picture_start start;
    bool random_access;    // see struct packet_facts
    bool reference;        // others may refer to it
    bool given;            // the decoder has given it out, and will not report its order
    struct AVFrame *frame; // the picture; NULL: shown only when the decoder gives it out
};

struct output_order {
    struct order_entry {
        struct order_picture picture;
        uint32_t sequence;
        bool unseen; // the sequence began unseen
        bool shown;
    } entry[OUTPUT_ORDER_PICTURES]; // in decoding order: not given out by the decoder yet
    int n;
    struct order_picture newest; // decoded last; without its frame
    int depth;                   // the most pictures decoded ahead of one that is shown before them
    uint32_t sequence;           // the last one
    bool unseen;                 // it began unseen
    int highest_disposable;      // POC of its pictures that are no references
    bool crossed; // a picture came after one that is no reference, and belongs ahead of it
    bool ended;
    int distrusted; // coming pictures for which only the decoder's own output counts
    bool begun;     // last_* are valid
    uint32_t last_sequence;
    int last_poc; // of the picture shown last
    int twos;     // shown pictures whose POC rose by 2, since the last one by an odd number
    int64_t late[OUTPUT_ORDER_PICTURES]; // serials, not reported yet
    int lates;
};

void output_order_begin(struct output_order *); // another stream, or another place in it
// Takes the next decoded picture with its frame. `depth`: the most pictures decoded ahead of one
// that is shown before them, by the stream or as far as the decoder can tell.
void output_order_decoded(struct output_order *, const struct order_picture *, int depth);
// Call when facts of recently decoded pictures are unknown: for these and some more of this
// sequence only the decoder's output counts.
void output_order_distrust(struct output_order *);
// Returns true if a picture after `poc` was shown; `poc` belongs to the last sequence.
bool output_order_is_behind(const struct output_order *, int poc);
// Call when no more pictures will come.
void output_order_end(struct output_order *);
// Returns a picture to show now, which the caller frees, or NULL. Call until it returns NULL.
struct AVFrame *output_order_next(struct output_order *);
// Takes a picture that the decoder gave out. Returns true if it is shown now; false: it was shown,
// or will be, or it is late.
bool output_order_output(struct output_order *, int64_t serial);
// Returns the serial of a picture that came after later ones were shown, each once; 0: none.
int64_t output_order_late(struct output_order *);

#endif
