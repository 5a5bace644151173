// Feeds RTP payloads of any bytes to a depacketizer, as a camera's packets. Each packet of the
// input is a byte of flags, a byte with the payload's length, with RTP_EXTENSION a byte with its
// header extension's length, then the payload and the extension.
#ifndef FRAMED_TESTS_FUZZ_RTP_PAYLOADS_H
#define FRAMED_TESTS_FUZZ_RTP_PAYLOADS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/rtsp/sdp.h"

enum {
    RTP_MARKER = 1,
    RTP_STAMP = 2, // another timestamp than the packet before
    RTP_HOLE = 4,  // two packets are missing before it
    RTP_RESTART = 8,
    RTP_PAUSE = 16, // 30 ms before it
    RTP_EXTENSION = 32,
    RTP_FLUSH = 64,  // the stream ends before it, and restarts
    RTP_LATER = 128, // the extension does not belong to a picture's first packet
};

// Checks that a unit begins as its codec requires, each loss is reported once, and nothing is held
// back at the end. `options` is for the codec.
void rtp_payloads_try(enum sdp_codec, uint8_t options, const uint8_t *data, size_t size);

#endif
