// The facts of a packet of H.264 or H.265, read in one pass over its NAL units: the place of its
// picture in the output order, lost references that libavcodec conceals, where a damaged stream is
// whole again, and the picture's hash.
#ifndef FRAMED_DAEMON_CODEC_PACKET_H
#define FRAMED_DAEMON_CODEC_PACKET_H

#include <limits.h>

#include "daemon/bitstream/nal.h"

struct AVCodecParameters;
struct AVPacket;

enum picture_start {
    PICTURE_CONTINUES,     // the sequence of the previous picture
    PICTURE_BEGINS,        // a sequence: all pictures decoded before are shown before
    PICTURE_BEGINS_LOWEST, // the same, and none decoded after it is shown ahead of it
    PICTURE_BEGINS_UNSEEN, // a sequence whose first picture is missing: the decoder takes it for
                           // part of the last one and mixes both
};

enum hash_method { // 1 more than the standard's hash_type
    HASH_NONE,
    HASH_MD5,
    HASH_CRC,
    HASH_CHECKSUM,
};

enum { HASH_BYTES_MAX = 16, NO_RECOVERY = INT_MIN };

// The hash of a decoded picture that an H.265 stream may carry (SEI decoded picture hash).
struct picture_hash {
    enum hash_method method;
    uint8_t digest[3][HASH_BYTES_MAX]; // by colour component
};

struct packet_facts {
    int64_t serial; // of the packet, from 1
    bool ordered;   // poc is valid
    int poc;        // picture order count, unique within a sequence
    enum picture_start start;
    bool random_access; // H.265, IRAP: pictures shown ahead of it are decoded right after it
    bool reference;     // others may refer to it
    bool disposable;    // no other picture refers to it
    bool field;         // H.264: one of the two fields of a picture, or broken
    bool broken;        // H.264: the slice header could not be read to its end
    bool in_order;      // pictures of its sequence are shown in decoding order
    bool may_be_hidden; // H.265: it may be marked as not shown
    bool sequence;      // H.265: it has sequence parameters
    int recovery; // SEI recovery point: recovery_frame_cnt or recovery_poc_cnt; NO_RECOVERY: none
    bool damaged; // a reference never came, or it is noise
    // A packet's serial or 0. If nothing is missing from that packet on, this picture and all after
    // it in output order are whole.
    int64_t whole_from;
    bool by_intra; // intra pictures serve as recovery points for it: the stream has no others
    struct picture_hash hash; // HASH_NONE unless hashes are read
};

// One thread uses a reader.
struct packet_reader;

// The parameters outlive the reader. Packets of other codecs have no facts. Returns 0 or -ENOMEM.
int packet_reader_open(struct packet_reader **ret, const struct AVCodecParameters *, bool hashes);
void packet_reader_close(struct packet_reader *); // accepts NULL
void packet_reader_begin(struct packet_reader *); // another stream, or another place in it
// Takes every packet, in decoding order: POC counts on from the packet before.
struct packet_facts packet_reader_read(struct packet_reader *, const struct AVPacket *,
                                       int64_t serial);

// Sets the hash in a suffix SEI, if it has a complete one.
void picture_hash_read(struct picture_hash *, const struct nal *suffix_sei);

// Iterates over the parameter sets in extradata, a record or NAL units with start codes.
struct extradata_reader {
    const uint8_t *data;
    size_t size, at;
    bool hevc;
    int arrays, units; // still to come, in the record and in its present array
};

struct extradata_reader extradata_read(const uint8_t *data, size_t size, bool hevc);
bool extradata_next(struct extradata_reader *, struct nal *ret); // false: no more

// --- lost pictures of H.264: the stream numbers its reference pictures, and a decoder silently
// conceals a missing number. If noise replaces an IDR picture or its parameter sets, a decoder may
// still make a picture of it, but the numbers violate the standard.

struct h264_loss {                          // zeroed, it is ready, or ready again
    struct h264_sps sequence[H264_SPS_MAX]; // frame_num_bits 0: never came
    uint8_t sequence_of[H264_PPS_MAX];      // by PPS id
    bool begun;                             // `last` is valid
    uint32_t last;                          // number of the last reference picture
    bool keyed;                             // an IDR picture has come
    int misnumbered;                        // consecutive IDR pictures with numbers other than 0
    int form;      // gaps, constraints and level of the first SPS; 0: none came
    int last_form; // of the last SPS
    int noise;     // if the last SPS was noise: IDR pictures that still count as made with it
};

// Takes a unit up to the picture's first slice. Returns true at a slice if a picture before it is
// missing, if it is noise, or if its parameters are.
bool h264_loss_unit(struct h264_loss *, const struct nal *);

#endif
