// Detects lost pictures of H.264. The stream numbers the pictures that others refer to; a decoder
// conceals a missing number without a word. Noise in the place of an IDR picture or of its
// parameters, from which a decoder may make a picture all the same, shows by numbers that the
// standard does not allow. One thread uses it; zeroed it is ready, and begins anew.
#ifndef FRAMED_DAEMON_DECODE_H264_LOSS_H
#define FRAMED_DAEMON_DECODE_H264_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    H264_LOSS_SEQUENCES = 32, // parameters that a stream may have at once: of sequences,
    H264_LOSS_PICTURES = 256, // and of pictures
};

struct h264_loss_sequence {
    int number_bits; // of a picture's number; 0: not known, or the stream may leave some out
    int planes_bits; // ahead of it
    int order_bits;  // of its place in the order, which is 0 too; 0: not given as one number
    bool fields;     // two pictures in a row may have one number
    bool known;      // they came
};

struct h264_loss {
    struct h264_loss_sequence sequence[H264_LOSS_SEQUENCES];
    uint8_t sequence_of[H264_LOSS_PICTURES]; // by the picture's parameters
    bool begun;                              // last holds
    uint32_t last;                           // number of the last picture that others are made from
    bool keyed;                              // an IDR picture has come
    int misnumbered;                         // IDR pictures in a row that have other numbers than 0
    int form;      // gaps, constraints and level of the first parameters; 0: none came
    int last_form; // of the last ones
    int noise;     // where the last parameters were: IDR pictures that still count as made by them
};

// Takes the headers, and the picture, of a packet with start codes, whatever its bytes are. Whether
// a picture ahead of it is missing, or it is noise or made by parameters that are.
bool h264_loss_before(struct h264_loss *, const uint8_t *data, size_t size);

#endif
