// One session with an RTSP camera, from connecting to TEARDOWN. Never blocks: the owner polls its
// descriptors and calls rtsp_session_step. One thread uses a session.
#ifndef FRAMED_DAEMON_INPUT_RTSP_SESSION_H
#define FRAMED_DAEMON_INPUT_RTSP_SESSION_H

#include <poll.h>

#include "config/config.h"
#include "daemon/input/depacketizer.h"
#include "daemon/input/picture_end.h"
#include "daemon/input/rtcp.h"
#include "daemon/input/rtp_receiver.h"
#include "daemon/input/sdp.h"

enum { RTSP_POLL_MAX = 8 }; // descriptors of one session

// What is known of a camera and survives its sessions; the owner keeps it, zeroed at first.
struct rtsp_memory {
    struct picture_end_verdict verdict;
    uint64_t sdp_hash;    // of the SDP that the verdict is of
    int keep_alive;       // the method that this camera heeds: rtsp_session.c
    bool udp_fails;       // no packet came over UDP: ask for TCP
    bool first_challenge; // the best challenge was refused: take the first
    bool single_session;  // a second session was refused (453, 503): no spare
};

struct rtsp_options {
    const struct camera_config *config; // outlives the session
    struct rtsp_memory *memory;         // outlives the session
};

struct rtsp_session;

int rtsp_session_open(struct rtsp_session **ret, const struct rtsp_options *, int64_t now_ns);
// Descriptors to poll, at most RTSP_POLL_MAX, and by when to call rtsp_session_step at the latest.
int rtsp_session_poll(const struct rtsp_session *, struct pollfd *fds, int64_t *due_ns);
// Goes on as far as it can. 0, or how the session ended: -ENODATA: BYE or the connection's regular
// end; -EACCES: user or password refused; -EUSERS: no room for a session (453, 503); -ETIMEDOUT;
// -EPROTO: no RTSP; -EINVAL: no video track that is decoded here; another negative errno.
int rtsp_session_step(struct rtsp_session *, int64_t now_ns);
// The next access unit; `capture_ns` since 1970, INT64_MIN: unknown. -EAGAIN: none yet.
struct rtsp_unit {
    struct access_unit unit;
    int64_t timestamp;  // unwrapped, in units of the clock rate
    int64_t capture_ns; // since 1970 by sender reports; INT64_MIN: unknown
    bool clock_stepped; // the camera set its clock since the unit before
};
int rtsp_session_read(struct rtsp_session *, int64_t now_ns, struct rtsp_unit *ret);
// The chosen track, as soon as DESCRIBE was answered; NULL before.
const struct sdp_media *rtsp_session_media(const struct rtsp_session *);
const uint8_t *rtsp_session_sets(const struct rtsp_session *, size_t *bytes);
struct rtp_statistics rtsp_session_statistics(const struct rtsp_session *);
const char *rtsp_session_transport(const struct rtsp_session *); // "tcp", "udp", "multicast"
void rtsp_session_want_keyframe(struct rtsp_session *); // asks the camera, at most once a second
void rtsp_session_ping(struct rtsp_session *); // a request now: its answer tells dead from idle
int64_t rtsp_session_heard_ns(const struct rtsp_session *); // when anything came last
// One sentence for people on how it ended, without a secret; "" while it goes on.
const char *rtsp_session_why(const struct rtsp_session *);
// Begins to say goodbye: rtsp_session_step then returns -ESHUTDOWN when it is over.
void rtsp_session_teardown(struct rtsp_session *, int64_t now_ns);
void rtsp_session_close(struct rtsp_session *); // at once; accepts NULL

#endif
