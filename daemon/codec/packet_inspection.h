// Finds what libavcodec does not report: lost pictures of H.264, hashes of pictures of H.265, and
// where a damaged stream is whole again. One thread uses it; zeroed except `parameters` and
// `reads_hashes`, it is ready.
#ifndef FRAMED_DAEMON_CODEC_PACKET_INSPECTION_H
#define FRAMED_DAEMON_CODEC_PACKET_INSPECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/codec/packet_history.h"

struct AVCodecParameters;
struct AVPacket;
struct picture_place_reader;

// --- where a stream of H.264 or H.265 is whole again without an IDR picture: after a recovery
// point, whose count spans a periodic intra refresh, or at intra pictures of streams that have
// nothing else

enum { RECOVERY_POINTS = 8 };

struct recovery {
    const struct AVCodecParameters *parameters; // owned by the caller
    struct picture_place_reader *reader;        // NULL: not open
    bool unreadable;                            // neither codec, or no memory for a reader
    struct recovery_point {
        int64_t serial; // of its first packet
        int64_t end;    // H.265: POC; H.264: fields of reference pictures still to come
    } pending[RECOVERY_POINTS];
    int n;
    struct recovery_whole {
        int64_t from; // packet of a point whose count has ended; 0: none
        int64_t poc;  // output order is whole from here on; INT64_MAX: unknown
    } newest, before; // `before` is for pictures shown ahead of the newest point
    bool marked;      // the stream has IDR or IRAP pictures or recovery points
    int intras;       // intra pictures of a stream without them
};

// Returns true if intra pictures have to serve as recovery points.
bool recovery_by_intra(const struct recovery *);

// --- lost pictures of H.264: the stream numbers its reference pictures, and a decoder silently
// conceals a missing number. If noise replaces an IDR picture or its parameter sets, a decoder may
// still make a picture of it, but the numbers violate the standard.

enum {
    H264_LOSS_SEQUENCES = 32, // parameter sets that a stream may have at once: of sequences,
    H264_LOSS_PICTURES = 256, // and of pictures
};

struct h264_loss_sequence {
    int number_bits; // of frame_num; 0: unknown, or the stream may leave some out
    int planes_bits; // of colour_plane_id ahead of it
    int order_bits;  // of pic_order_cnt_lsb, also 0 in an IDR; 0: order is not one number
    bool fields;     // two consecutive pictures may share a number
    bool known;      // was received
};

struct h264_loss { // zeroed, it is ready, or ready again
    struct h264_loss_sequence sequence[H264_LOSS_SEQUENCES];
    uint8_t sequence_of[H264_LOSS_PICTURES]; // by PPS id
    bool begun;                              // `last` is valid
    uint32_t last;                           // number of the last reference picture
    bool keyed;                              // an IDR picture has come
    int misnumbered;                         // consecutive IDR pictures with numbers other than 0
    int form;      // gaps, constraints and level of the first SPS; 0: none came
    int last_form; // of the last SPS
    int noise;     // if the last SPS was noise: IDR pictures that still count as made with it
};

// Takes the headers and the picture of a packet with start codes, whatever its bytes are. Returns
// true if a picture before it is missing, if it is noise, or if its parameters are.
bool h264_loss_before(struct h264_loss *, const uint8_t *data, size_t size);

// --- all of it

struct packet_inspection {
    const struct AVCodecParameters *parameters; // owned by the caller
    struct h264_loss h264_loss;
    struct recovery recovery;
    int highest_layer; // the highest temporal layer of H.265 so far
    bool reads_hashes; // of H.265
};

void packet_inspection_begin(struct packet_inspection *); // another stream, or another place in it
void packet_inspection_finish(struct packet_inspection *);
// Takes every packet, in order. Marks it as damaged if a reference never came or if it is noise,
// and sets `whole_from`: a packet's serial number or 0. If nothing is missing from that packet on,
// this picture and all after it in output order are whole.
void packet_inspection_order(struct packet_inspection *, const struct AVPacket *,
                             struct packet_info *);
// Returns true if the packet marks its picture as unused by others: H.264 and H.265.
bool packet_inspection_disposable(struct packet_inspection *, const struct AVPacket *);
// Sets the hash of a packet that will be decoded, and whether a reference of it was lost.
void packet_inspection_content(struct packet_inspection *, const struct AVPacket *,
                               struct packet_info *);

#endif
