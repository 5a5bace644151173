// One session with an RTSP camera, from connecting to TEARDOWN, with the detours that servers
// require: challenges, redirections, another URL of the track, TCP instead of UDP. Never blocks:
// the owner polls its descriptors and calls rtsp_session_step or rtsp_session_read. One thread uses
// a session.
#ifndef FRAMED_DAEMON_RTSP_SESSION_H
#define FRAMED_DAEMON_RTSP_SESSION_H

#include <poll.h>

#include "daemon/rtsp/dialogue.h"

enum { RTSP_POLL_MAX = 8 }; // descriptors of one session

// Begins to connect. Returns 0, -EINVAL (the URL), -ENOMEM or another negative errno: there is no
// session then. connect_timeout, from now on, limits everything up to the answer to PLAY. The
// configuration and the memory outlive the session.
int rtsp_session_open(struct rtsp_session **ret, const struct camera_config *, struct rtsp_memory *,
                      int64_t now_ns);
// Fills in the descriptors to poll and returns how many, at most RTSP_POLL_MAX. *due_ns: when to
// call rtsp_session_step at the latest. Data read ahead is invisible to poll(): read units until
// -EAGAIN first.
int rtsp_session_poll(const struct rtsp_session *, struct pollfd *fds, int64_t *due_ns);
// Continues as far as possible, or until a unit waits. Returns 0, or why the session ended, once
// the units before its end have been read: -ENODATA: BYE or the connection's regular end; -EACCES:
// user or password refused; -EPERM: the stream is forbidden (403); -EUSERS: no room for a session
// (453, 503); -ETIMEDOUT; -EPROTO: no RTSP; -ETIME: the media are not of the announced codec;
// -EINVAL: no video track; -EMEDIUMTYPE: video, but none in H.264, H.265 or JPEG; -EKEYREJECTED:
// the certificate; -ESHUTDOWN: after rtsp_session_teardown; another negative errno.
int rtsp_session_step(struct rtsp_session *, int64_t now_ns);
// Does the same, and returns 0 with the next access unit, valid until the next step or read;
// -EAGAIN: nothing has arrived.
int rtsp_session_read(struct rtsp_session *, int64_t now_ns, struct rtsp_unit *ret);
enum rtsp_phase rtsp_session_phase(const struct rtsp_session *);
bool rtsp_session_has_begun(const struct rtsp_session *);   // PLAY was answered, or media arrived
bool rtsp_session_is_answered(const struct rtsp_session *); // all requests since PLAY were answered
// Returns the chosen track, NULL before DESCRIBE was answered. The pointer stays the same.
const struct sdp_media *rtsp_session_media(const struct rtsp_session *);
const uint8_t *rtsp_session_sets(const struct rtsp_session *, size_t *bytes);
struct rtp_statistics rtsp_session_statistics(const struct rtsp_session *);
uint64_t rtsp_session_overruns(const struct rtsp_session *); // packets dropped by our own kernel
const char *rtsp_session_transport(const struct rtsp_session *); // "tcp", "udp", "multicast"
void rtsp_session_want_keyframe(struct rtsp_session *); // requests one, at most once a second
void rtsp_session_ping(struct rtsp_session *); // a request now: an answer means idle, not dead
int64_t rtsp_session_heard_ns(const struct rtsp_session *); // when anything arrived last
// Returns one sentence for people on why the session ended, without a secret; "" before.
const char *rtsp_session_why(const struct rtsp_session *);
// Begins TEARDOWN: rtsp_session_step returns -ESHUTDOWN when it is over, after 0.5 s at the latest.
// No more units are read.
void rtsp_session_teardown(struct rtsp_session *, int64_t now_ns);
// Closes at once: sends TEARDOWN, but does not wait for the reply. Accepts NULL.
void rtsp_session_close(struct rtsp_session *);

#endif
