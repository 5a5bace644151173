// RTP payloads of whatever bytes, given to a depacketizer as a camera's packets. Each packet of the
// input is a byte of flags, a byte that says how many of the following are its payload, and with
// RTP_EXTENSION one for those of its header extension, which follow the payload.
#ifndef FRAMED_TESTS_FUZZ_RTP_PAYLOADS_H
#define FRAMED_TESTS_FUZZ_RTP_PAYLOADS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/rtsp/sdp.h"

enum {
    RTP_MARKER = 1,
    RTP_STAMP = 2, // another time than the packet before
    RTP_HOLE = 4,  // two packets are missing ahead of it
    RTP_RESTART = 8,
    RTP_PAUSE = 16, // 30 ms ahead of it
    RTP_EXTENSION = 32,
    RTP_FLUSH = 64,  // the stream ends ahead of it, and begins again
    RTP_LATER = 128, // the extension is none of the first packet of a picture
};

// Whatever they are: a unit has what its codec begins with, padding is zero, no loss is told twice
// or forgotten, and after the end nothing is held back. `options` is for the codec.
void rtp_payloads_try(enum sdp_codec, uint8_t options, const uint8_t *data, size_t size);

#endif
