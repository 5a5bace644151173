// The order in which decoded pictures are shown, as early as it can be known. A decoder gives a
// picture out when no other can come ahead of it by the stream's word alone: often some packets
// after it was decoded. This module says from the picture order counts (POC) which decoded pictures
// may be shown before the decoder gives them out; the decoder's own output, which comes later, has
// the last word. One thread uses it; zeroed it is ready.
#ifndef FRAMED_DAEMON_DECODE_OUTPUT_ORDER_H
#define FRAMED_DAEMON_DECODE_OUTPUT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum { OUTPUT_ORDER_PICTURES = 64 }; // that are known at once; a decoder holds at most 16 back

enum order_start {
    ORDER_CONTINUES,     // the sequence that the picture before belongs to
    ORDER_BEGINS,        // a sequence: all pictures decoded before are shown before
    ORDER_BEGINS_LOWEST, // and nothing decoded behind it is shown ahead of it
    ORDER_BEGINS_UNSEEN, // a sequence whose first picture is missing: the decoder, which takes it
                         // for more of the last one, mixes both
};

struct order_picture {
    int64_t serial; // above 0
    int poc;        // unique within its sequence
    enum order_start start;
    bool random_access; // H.265, IRAP: what is shown ahead of it is decoded right behind it
    bool reference;     // others may be made from it
    bool taken;         // it can be shown before the decoder gives it out
    bool given;         // and the decoder gave it out: it will say nothing of its order
};

enum order_rule {
    ORDER_RULE_SAFE,          // what the stream says
    ORDER_RULE_NON_REFERENCE, // no picture comes ahead of one that is no reference
    ORDER_RULE_STEP,          // POC rises by the same step from one picture to the next
    ORDER_RULES
};

struct output_order {
    struct order_entry {
        struct order_picture picture;
        uint32_t sequence;
        bool unseen; // the sequence began unseen
        bool shown;
        enum order_rule rule;
    } entry[OUTPUT_ORDER_PICTURES]; // in decoding order: not seen from the decoder yet
    int n;
    struct order_picture newest; // decoded last
    int depth;         // most pictures that are decoded ahead of one that is shown before them
    uint32_t sequence; // the last one
    bool unseen;       // it began so
    bool ended;
    int distrusted; // pictures for which only the decoder's own output counts
    bool begun;     // last_* hold
    uint32_t last_sequence;
    int last_poc; // of the picture shown last
    // What was learnt:
    bool no_non_reference;             // that the rule is wrong
    int step;                          // 0: not known
    int smallest, pictures, sequences; // the smallest difference of POC, over so many
    int patience;                      // by which learning takes longer: steps were wrong before
};

void output_order_begin(struct output_order *); // another stream, or another place in it
// Other parameters of the sequence came: POC may rise by another step.
void output_order_forget(struct output_order *);
// The next picture was decoded. `depth`: the most pictures that are decoded ahead of one that is
// shown before them, by the stream's word or as far as the decoder knows.
// False: the picture is given, and pictures behind it were shown; it is dropped.
bool output_order_decoded(struct output_order *, const struct order_picture *, int depth);
// Something is not known of the pictures decoded lately: for them and some more of this sequence
// only the decoder's output counts.
void output_order_distrust(struct output_order *);
// Whether a picture behind `poc` in its sequence, the last one, was shown.
bool output_order_is_behind(const struct output_order *, int poc);
// Whether a picture was decoded, and neither shown nor passed over.
bool output_order_holds(const struct output_order *, int64_t serial);
// No more pictures will come.
void output_order_end(struct output_order *);
// The serial of a picture that is to be shown now, or 0. To be called until it returns 0.
int64_t output_order_next(struct output_order *);

enum order_verdict {
    ORDER_SHOW, // now
    ORDER_DROP, // it was shown
    ORDER_LATE, // pictures behind it were shown: a rule was wrong
};
// The decoder gave out a picture.
enum order_verdict output_order_output(struct output_order *, int64_t serial);

#endif
