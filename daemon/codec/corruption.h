// Damage of decoded pictures: found by the hashes in an H.265 stream, and treated by the policy
// `damaged`.
#ifndef FRAMED_DAEMON_CODEC_CORRUPTION_H
#define FRAMED_DAEMON_CODEC_CORRUPTION_H

#include "config/config.h"
#include "daemon/codec/packet.h"

struct AVFrame;
struct AVMD5;

// --- the hash of a decoded picture shows whether it was decoded as its encoder saw it

// Compares the hashes of one stream. An encoder may compute a component's hashes wrongly: if they
// never matched since the stream began, they count for its first pictures only, and the CRC of
// chroma, wrong in x265 3.5, does not count at all. libavcodec can only check MD5, and reports the
// result only in its log. One thread uses it; zeroed, it is ready.
struct hash_checker {
    struct AVMD5 *md5; // allocated with the first picture that has such a hash
    bool matched[3];   // by component: at least once
    int mismatched[3]; // pictures with a mismatch in the component before any match
};

// Returns true if a picture, which was not cropped, has errors. False if it has no hash or is on a
// device.
bool hash_checker_finds_errors(struct hash_checker *, const struct picture_hash *,
                               const struct AVFrame *);
void hash_checker_finish(struct hash_checker *); // ready for another stream

// --- the policy: withholds pictures, and marks pictures that refer to damaged ones. One thread
// uses it.

struct corruption {
    enum damaged policy;
    bool holding;           // DAMAGED_HOLD: until the next clean keyframe
    int tainted;            // pictures still to come that may be made from a damaged one
    bool missing_reference; // a reference never came: affects all pictures up to a keyframe
    int leading;            // damaged pictures before the first keyframe; -1: it has come
    int64_t broken;         // serial of the newest packet that is damaged or missing
};

void corruption_begin(struct corruption *, enum damaged); // of a stream, perhaps between keyframes
// Call when the packet's picture refers to one that never came.
void corruption_missing_reference(struct corruption *, int64_t serial);
void corruption_loss(struct corruption *, int64_t serial); // the packet's picture was lost
// Takes the next picture in output order, with the facts of its packet. `harmed`: it is damaged
// itself, not for lack of a reference. `*flags`, enum framed_flags, marks it if it is damaged.
// Sets the flag also for pictures after a damaged or lost one, up to a clean keyframe or a recovery
// point; after a recovery point, a picture that only lacked references no longer counts as damaged.
// Returns true if the policy withholds the picture.
bool corruption_withholds(struct corruption *, const struct packet_facts *, bool harmed,
                          uint32_t *flags);

#endif
