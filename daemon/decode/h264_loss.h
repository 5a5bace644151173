// Detects lost pictures of H.264. The stream numbers its reference pictures, and a decoder silently
// conceals a missing number. If noise replaces an IDR picture or its parameter sets, a decoder may
// still make a picture of it, but the numbers violate the standard. One thread uses it; zeroed, it
// is ready, or ready again.
#ifndef FRAMED_DAEMON_DECODE_H264_LOSS_H
#define FRAMED_DAEMON_DECODE_H264_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct h264_loss {
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

#endif
