// One session with an RTSP camera, from connecting to TEARDOWN. Never blocks: the owner polls its
// descriptors and calls rtsp_session_step. One thread uses a session.
#ifndef FRAMED_DAEMON_RTSP_RTSP_SESSION_H
#define FRAMED_DAEMON_RTSP_RTSP_SESSION_H

#include <poll.h>

#include "config/config.h"
#include "daemon/rtsp/rtsp_memory.h"
#include "daemon/rtsp/rtsp_track.h"

enum { RTSP_POLL_MAX = 8 }; // descriptors of one session

struct rtsp_options {
    const struct camera_config *config; // outlives the session
    struct rtsp_memory *memory;         // outlives the session
};

struct rtsp_session;

// Begins to connect. 0, -EINVAL (the URL) or -ENOMEM: there is no session then. The configuration's
// connect_timeout, from now on, bounds everything up to the answer to PLAY.
int rtsp_session_open(struct rtsp_session **ret, const struct rtsp_options *, int64_t now_ns);
// Fills in the descriptors to poll, returns how many, at most RTSP_POLL_MAX, and says by when to
// call rtsp_session_step at the latest. What was read ahead is not seen by poll: read units until
// -EAGAIN first.
int rtsp_session_poll(const struct rtsp_session *, struct pollfd *fds, int64_t *due_ns);
// Goes on as far as it can, or until a unit waits. 0, or how the session ended, once the units
// before its end have been read: -ENODATA: BYE or the connection's regular end; -EACCES: user or
// password refused; -EPERM: the stream is forbidden (403); -EUSERS: no room for a session (453,
// 503); -ETIMEDOUT; -EPROTO: no RTSP; -ETIME: what it sends is not of the codec that it announced;
// -EINVAL: no video track; -EMEDIUMTYPE: video, but none in H.264, H.265 or JPEG; -EKEYREJECTED:
// the certificate; -ESHUTDOWN: after rtsp_session_teardown; another negative errno.
int rtsp_session_step(struct rtsp_session *, int64_t now_ns);
// The next access unit, valid until the next call of step or read. Reads the network itself, so
// that the owner may call it until -EAGAIN, which says: nothing has come, or the session has ended.
int rtsp_session_read(struct rtsp_session *, int64_t now_ns, struct rtsp_unit *ret);
bool rtsp_session_plays(const struct rtsp_session *);       // PLAY was sent, or answered
bool rtsp_session_is_starting(const struct rtsp_session *); // PLAY was sent, and not answered
bool rtsp_session_has_begun(const struct rtsp_session *);   // PLAY was answered, or media came
bool rtsp_session_is_answered(const struct rtsp_session *); // so was PLAY, and all behind it
// The chosen track, as soon as DESCRIBE was answered; NULL before. Stays the same.
const struct sdp_media *rtsp_session_media(const struct rtsp_session *);
const uint8_t *rtsp_session_sets(const struct rtsp_session *, size_t *bytes);
struct rtp_statistics rtsp_session_statistics(const struct rtsp_session *);
uint64_t rtsp_session_overruns(const struct rtsp_session *); // packets that our own kernel dropped
const char *rtsp_session_transport(const struct rtsp_session *); // "tcp", "udp", "multicast"
void rtsp_session_want_keyframe(struct rtsp_session *); // asks the camera, at most once a second
void rtsp_session_ping(struct rtsp_session *); // a request now: its answer tells dead from idle
int64_t rtsp_session_heard_ns(const struct rtsp_session *); // when anything came last
// One sentence for people on how it ended, without a secret; "" while it goes on.
const char *rtsp_session_why(const struct rtsp_session *);
// Begins to say goodbye: rtsp_session_step then returns -ESHUTDOWN when it is over, after 0.5 s at
// the latest. Units are read no more.
void rtsp_session_teardown(struct rtsp_session *, int64_t now_ns);
// At once; says goodbye, but does not wait until the camera has heard it. Accepts NULL.
void rtsp_session_close(struct rtsp_session *);

#endif
