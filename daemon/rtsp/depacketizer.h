// Makes access units from RTP payloads: H.264 (RFC 6184), H.265 (RFC 7798), MJPEG (RFC 2435).
// Detects the end of a unit by three signals: a NAL unit that begins another unit, a new timestamp,
// a marker after a slice. Learns how reliable a camera's markers are (struct picture_end_verdict).
// Pure: the caller passes the time. One thread uses a depacketizer.
#ifndef FRAMED_DAEMON_RTSP_DEPACKETIZER_H
#define FRAMED_DAEMON_RTSP_DEPACKETIZER_H

#include "daemon/rtsp/assembly.h"

struct depacketizer;
struct parameter_sets;
struct sdp_media;

// Reads `media` during the call. The owner keeps *verdict over connections, and the depacketizer
// updates it; NULL: starts with nothing learnt. Returns 0; -ENOTSUP: another codec; -ENOMEM.
int depacketizer_open(struct depacketizer **ret, const struct sdp_media *media,
                      struct picture_end_verdict *verdict);
void depacketizer_close(struct depacketizer *); // accepts NULL
// Returns 0 or -ENOMEM. The caller has taken all complete units with depacketizer_get before.
int depacketizer_put(struct depacketizer *, const struct rtp_packet *);
// Returns the next complete unit; its data is valid until the next call of put, get or flush. Ends
// units that have waited long enough at `now_ns`. 0 or -EAGAIN.
int depacketizer_get(struct depacketizer *, int64_t now_ns, struct access_unit *ret);
// Returns when depacketizer_get has a unit without more packets. INT64_MIN: now; INT64_MAX: never.
int64_t depacketizer_due_ns(const struct depacketizer *);
void depacketizer_flush(struct depacketizer *); // completes the open unit: the stream is over
// Returns the stream's parameter sets so far, from the SDP or newer, with start codes. For the
// decoder's extradata and for recordings. NULL: the codec has none.
const uint8_t *depacketizer_sets(const struct depacketizer *, size_t *bytes);
// Returns what is wrong with the stream, for people, or NULL; valid until close.
const char *depacketizer_complaint(const struct depacketizer *);

// The interface of a codec's depacketizer.
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
