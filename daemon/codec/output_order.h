// The order in which decoded pictures are shown, as early as it can be determined. A decoder gives
// a picture out when the stream guarantees that no other comes ahead of it, often some packets
// after decoding it. This module uses picture order counts (POC) to find the decoded pictures that
// may be shown earlier. The decoder's own output, which comes later, overrides it. One thread uses
// it; zeroed, it is ready.
#ifndef FRAMED_DAEMON_CODEC_OUTPUT_ORDER_H
#define FRAMED_DAEMON_CODEC_OUTPUT_ORDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { OUTPUT_ORDER_PICTURES = 64 }; // tracked at once; a decoder holds back at most 16

enum order_start {
    ORDER_CONTINUES,     // the sequence of the previous picture
    ORDER_BEGINS,        // a sequence: all pictures decoded before are shown before
    ORDER_BEGINS_LOWEST, // the same, and none decoded after it is shown ahead of it
    ORDER_BEGINS_UNSEEN, // a sequence whose first picture is missing: the decoder takes it for part
                         // of the last one and mixes both
};

struct order_picture {
    int64_t serial; // above 0
    int poc;        // unique within its sequence
    enum order_start start;
    bool random_access; // H.265, IRAP: pictures shown ahead of it are decoded right after it
    bool reference;     // others may refer to it
    bool taken;         // it can be shown before the decoder gives it out
    bool given;         // the decoder has given it out, and will not report its order
};

enum order_rule {
    ORDER_RULE_SAFE,          // guaranteed by the stream
    ORDER_RULE_NON_REFERENCE, // no picture comes ahead of a non-reference picture
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
    } entry[OUTPUT_ORDER_PICTURES]; // in decoding order: not given out by the decoder yet
    int n;
    struct order_picture newest; // decoded last
    int depth;                   // the most pictures decoded ahead of one that is shown before them
    uint32_t sequence;           // the last one
    bool unseen;                 // it began unseen
    bool ended;
    int distrusted; // coming pictures for which only the decoder's own output counts
    bool begun;     // last_* are valid
    uint32_t last_sequence;
    int last_poc; // of the picture shown last
    // Learned:
    bool no_non_reference;             // ORDER_RULE_NON_REFERENCE was wrong
    int step;                          // 0: unknown
    int smallest, pictures, sequences; // the smallest difference of POC, over how many
    int patience;                      // how much longer learning takes, after wrong steps
};

void output_order_begin(struct output_order *); // another stream, or another place in it
// Call when the sequence's parameters changed: POC may rise by another step.
void output_order_forget(struct output_order *);
// Takes the next decoded picture. `depth`: the most pictures decoded ahead of one that is shown
// before them, by the stream or as far as the decoder can tell. Returns false if the picture is
// given and later pictures were shown: it is dropped.
bool output_order_decoded(struct output_order *, const struct order_picture *, int depth);
// Call when facts of recently decoded pictures are unknown: for these and some more of this
// sequence only the decoder's output counts.
void output_order_distrust(struct output_order *);
// Returns true if a picture after `poc` was shown; `poc` belongs to the last sequence.
bool output_order_is_behind(const struct output_order *, int poc);
// Returns true if a picture was decoded, and neither shown nor passed over.
bool output_order_holds(const struct output_order *, int64_t serial);
// Call when no more pictures will come.
void output_order_end(struct output_order *);
// Returns the serial of a picture to show now, or 0. Call until it returns 0.
int64_t output_order_next(struct output_order *);

enum order_verdict {
    ORDER_SHOW, // now
    ORDER_DROP, // was shown
    ORDER_LATE, // later pictures were shown: a rule was wrong
};
// Takes a picture that the decoder gave out.
enum order_verdict output_order_output(struct output_order *, int64_t serial);

// --- the place of a picture of H.264 or H.265 in the output order, from its packet: by
// libavcodec's parser, and by the NAL units up to its first slice. One thread uses a reader.

struct AVCodecParameters;
struct AVPacket;
struct picture_place_reader;

enum { NO_RECOVERY = INT_MIN };

struct picture_place {
    bool known; // poc is valid
    int poc;
    enum order_start start;
    bool random_access; // H.265, IRAP
    bool reference;     // others may refer to it
    bool field;         // H.264: one of the two fields of a picture, or broken
    bool broken;        // H.264: the slice header could not be read to its end
    bool intra;         // in all slices; H.265: only known for pictures of one slice
    // Its SEI recovery point: recovery_frame_cnt of H.264, recovery_poc_cnt of H.265.
    int recovery;       // NO_RECOVERY: it has none
    bool one_reference; // H.264: pictures of its sequence refer to the last one at most
    bool in_order;      // pictures of its sequence are shown in decoding order
    bool may_be_hidden; // H.265: it may be marked as not shown
    bool new_sequence;  // its SPS differs from the last one
};

// -ENOTSUP: neither H.264 nor H.265; -ENOMEM.
int picture_place_open(struct picture_place_reader **ret, const struct AVCodecParameters *);
void picture_place_close(struct picture_place_reader *); // accepts NULL
// Call for each packet, in decoding order: POC counts on from the packet before.
struct picture_place picture_place_read(struct picture_place_reader *, const struct AVPacket *);

#endif
