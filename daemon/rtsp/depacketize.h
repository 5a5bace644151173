// The interface of a codec's depacketizer.
#ifndef FRAMED_DAEMON_RTSP_DEPACKETIZE_H
#define FRAMED_DAEMON_RTSP_DEPACKETIZE_H

#include "daemon/rtsp/assembly.h"
#include "daemon/rtsp/parameter_sets.h"
#include "daemon/rtsp/sdp.h"

struct depacketize_codec {
    size_t bytes; // size of its state, which is zeroed before open
    void (*open)(void *state, struct assembly *, const struct sdp_media *);
    void (*packet)(void *state, const struct rtp_packet *);
    void (*flush)(void *state); // no packet follows: drops an incomplete piece
    const struct parameter_sets *(*sets)(const void *state); // NULL: the codec has none
    // For people: what is wrong with the stream, or NULL; lives with the state. May be NULL.
    const char *(*complaint)(const void *state);
};

extern const struct depacketize_codec depacketize_h264, depacketize_h265, depacketize_jpeg;

#endif
