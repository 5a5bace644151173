// From RTP payloads to whole access units: H.264 (RFC 6184), H.265 (RFC 7798), MJPEG (RFC 2435).
// An access unit ends by three signals together: a NAL unit that begins another, another timestamp,
// a marker behind a slice; how far a camera's markers are to be trusted is learnt (picture_end.h).
// Pure: the caller says what time it is. One thread uses a depacketizer.
#ifndef FRAMED_DAEMON_RTSP_DEPACKETIZER_H
#define FRAMED_DAEMON_RTSP_DEPACKETIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/rtsp/access_unit.h"

struct rtp_packet;
struct sdp_media;

struct picture_end_verdict; // picture_end.h
struct depacketizer;

// `media` is read during the call. *verdict is kept by the owner over connections and updated here;
// NULL: begins anew. 0; -ENOTSUP: a codec that is none of these; -ENOMEM.
int depacketizer_open(struct depacketizer **ret, const struct sdp_media *media,
                      struct picture_end_verdict *verdict);
void depacketizer_close(struct depacketizer *); // accepts NULL
// 0 or -ENOMEM. All units that are complete have been taken with depacketizer_get before.
int depacketizer_put(struct depacketizer *, const struct rtp_packet *);
// The next unit that is complete; its data is valid until the next call of put, get or flush.
// `now_ns` ends units whose time to wait for more is over. 0 or -EAGAIN.
int depacketizer_get(struct depacketizer *, int64_t now_ns, struct access_unit *ret);
// When depacketizer_get will give a unit though nothing else comes; INT64_MIN: now; INT64_MAX: not.
int64_t depacketizer_due_ns(const struct depacketizer *);
void depacketizer_flush(struct depacketizer *); // the stream ends: what is held is complete
// Parameter sets of the stream so far, SDP's or newer ones, with start codes. For the decoder's
// extradata and for recordings.
const uint8_t *depacketizer_sets(const struct depacketizer *, size_t *bytes);
// For people: what is wrong with the stream, valid until it is closed. NULL: nothing.
const char *depacketizer_complaint(const struct depacketizer *);

#endif
