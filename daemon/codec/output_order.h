// The order in which decoded pictures are shown, as early as it can be determined: by picture order
// counts (POC), pictures that wait are shown once no other can come ahead of them. One thread uses
// it; zeroed, it only needs output_order_begin.
#ifndef FRAMED_DAEMON_CODEC_OUTPUT_ORDER_H
#define FRAMED_DAEMON_CODEC_OUTPUT_ORDER_H

#include "daemon/codec/packet.h"

struct AVFrame;

enum { OUTPUT_ORDER_PICTURES = 64 }; // that wait; no stream needs more than 16

struct output_order {
    struct order_entry {
        struct AVFrame *frame;
        uint32_t sequence;
        int poc;
        bool lowest;                // no picture of its sequence comes ahead of it
        bool random_access;         // see struct packet_facts
    } entry[OUTPUT_ORDER_PICTURES]; // in decoding order
    int n;
    int newest_poc; // of the picture decoded last
    bool newest_is_reference;
    int depth;              // the most pictures decoded ahead of one that is shown before them
    uint32_t sequence;      // the last one, above 0
    int highest_disposable; // POC of its pictures that are no references
    bool crossed;   // a picture came after one that is no reference, and belongs ahead of it
    bool ended;     // set by the owner: no more pictures will come
    int distrusted; // coming pictures that are ordered by the stream's guarantee alone
    uint32_t last_sequence; // of the picture shown last; 0: none
    int last_poc;
    int twos; // shown pictures whose POC rose by 2, since the last one by an odd number
};

void output_order_begin(struct output_order *); // another stream, or another place in it
// Takes the next decoded picture, with the facts of its packet. `depth`: the most pictures decoded
// ahead of one that is shown before them, by the stream or as far as the decoder can tell. If a
// later one was shown, it comes next, with AV_FRAME_FLAG_DISCARD.
void output_order_decoded(struct output_order *, const struct packet_facts *, struct AVFrame *,
                          int depth);
// Returns true if a picture after `poc` was shown; `poc` belongs to the last sequence.
bool output_order_is_behind(const struct output_order *, int poc);
// Returns a picture to show now, which the caller frees, or NULL. Call until it returns NULL.
struct AVFrame *output_order_next(struct output_order *);

#endif
