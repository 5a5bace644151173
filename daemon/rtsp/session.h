// One session with an RTSP camera, from connecting to TEARDOWN, with the detours that servers
// require: challenges, redirections, another URL of the track, TCP instead of UDP. Never blocks:
// the owner polls its descriptors and calls rtsp_session_step or rtsp_session_read. One thread uses
// a session.
#ifndef FRAMED_DAEMON_RTSP_SESSION_H
#define FRAMED_DAEMON_RTSP_SESSION_H

#include <poll.h>

#include "config/config.h"
#include "daemon/rtsp/carriage.h"
#include "daemon/rtsp/messages.h"
#include "daemon/rtsp/rtsp_track.h"
#include "daemon/rtsp/url.h"

enum { RTSP_POLL_MAX = 8 }; // descriptors of one session

// The facts about a camera that survive its sessions. The owner keeps them, zeroed at first; the
// session reads and writes them.
struct rtsp_memory {
    struct picture_end_verdict verdict;
    struct sdp_media media; // the track of the verdict
    int payload_type;       // sent by the camera, if it offers several; 0: unknown
    int keep_alive;         // number of methods that kept no session alive
    bool keep_alive_proven; // the next method kept one alive for several timeouts
    int session_s;          // the camera's session timeout without a request, as named last; 0:
                            // never named
    bool source_change_logged, complaint_logged;
    bool udp_fails;       // media came only over TCP: request TCP
    bool tcp_fails;       // TCP failed after a silent UDP: keep waiting for UDP
    int64_t patience_ns;  // silence that the owner allows; 0: not known to be slow
    bool first_challenge; // after -EACCES: the best challenge was refused; the next session uses
                          // another one, and may be opened without a pause
    bool digest_offered;  // the password is never sent in clear from then on
};

enum rtsp_phase { // in this order, apart from detours
    RTSP_CONNECTING,
    RTSP_DESCRIBING,
    RTSP_SETTING_UP,
    RTSP_STARTING, // PLAY was sent
    RTSP_PLAYING,
    RTSP_LEAVING, // TEARDOWN, which may wait for the reply to another request
};

struct rtsp_session;

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

// --- private: dialogue.c asks and takes replies, session.c receives media and keeps time

struct rtsp_session {
    const struct camera_config *config;
    struct rtsp_memory *memory;
    enum rtsp_phase phase;
    struct rtsp_url url;      // of the connected server
    char place[300];          // the same for people: "192.0.2.10:554"
    enum transport transport; // to request
    bool fell_back;           // from UDP
    bool reconnects;          // after RTSP_LEAVING
    int redirects;
    struct rtsp_connection *connection;
    struct rtsp_reader reader;
    struct rtsp_carriage carriage;
    // The requests of this connection; one is open at a time.
    const char *method; // of the open request; NULL: none
    char request_url[RTSP_URL_MAX], request_headers[512];
    int64_t asked_ns;         // when the last one was sent
    uint32_t cseq, abandoned; // abandoned: the request whose reply is not awaited
    struct rtsp_auth auth;
    bool is_signed, repeated, accepted; // accepted: the camera has accepted a signed request
    char session_id[512];               // from SETUP's reply; "": none so far
    int timeout_s;                      // the smallest one named; 0: none

    struct rtsp_track *track; // from SETUP's reply on
    bool avoids;              // RTP packets of the SSRC `avoided` came before SETUP's reply
    uint32_t avoided;
    struct sdp_media media; // SDP_OTHER: not described so far
    bool other_video;
    bool other_formats[128]; // payload types that the camera may send instead of ours
    bool other_codecs[128];  // payload types announced for other codecs
    bool dynamic_rate;       // the server understands x-Dynamic-Rate
    bool merged;             // the track's URL is resolved as in RFC 3986
    char base[RTSP_URL_MAX], aggregate[RTSP_URL_MAX];
    int64_t timeout_ns;    // of the session, without a request
    int64_t keep_alive_ns; // when the next request is due; INT64_MAX: never
    bool keep_alive_sent;
    bool get_listed; // OPTIONS' reply lists GET_PARAMETER
    // CLOCK_MONOTONIC; 0: unset.
    int64_t now_ns, opened_ns, play_ns, leave_ns;
    int64_t heard_ns, media_ns;     // when anything, and when media arrived last
    int64_t parted_ns;              // when BYE arrived last
    int64_t report_ns, keyframe_ns; // when the last one was sent
    bool wants_keyframe, channel_logged;
    bool datagram_came; // from the camera: UDP works
    int other_format;   // packets in a row
    bool busy;          // there is more input than one step takes
    // unit_ns: the last unit arrived; 0: none. waited_ns: time since then without network data,
    // except the present one, which began at dry_ns (0: there is data).
    int64_t unit_ns, dry_ns, waited_ns;
    bool has_unit;
    struct rtsp_unit unit;
    int ended; // the negative errno; 0: not ended
    char why[512];
};

// Functions that return int return 0, -EAGAIN, or a negative errno that has ended the session.

int rtsp_begin(struct rtsp_session *);   // begins to connect to `url`
int rtsp_connect(struct rtsp_session *); // continues; -EAGAIN: not connected so far
int rtsp_take_message(struct rtsp_session *, const struct rtsp_message *);
int rtsp_start(struct rtsp_session *);                // PLAY is answered, or counts as answered
int rtsp_keep_alive(struct rtsp_session *);           // abandons a request that is unanswered
int rtsp_fall_back(struct rtsp_session *);            // to TCP, on another connection
int rtsp_leave(struct rtsp_session *);                // sends BYE and TEARDOWN
int rtsp_finish(struct rtsp_session *);               // after TEARDOWN: ends or reconnects
const char *rtsp_method(const struct rtsp_session *); // of the present phase
// Ends the session, unless it has ended before, and returns `rc`. The reason is the place, and then
// the text.
__attribute__((format(printf, 3, 4))) int rtsp_end(struct rtsp_session *, int rc,
                                                   const char *format, ...);
// Does the same; `what` stands before the place ("cannot answer"), and the error behind it.
int rtsp_end_by_error(struct rtsp_session *, int rc, const char *what);
void rtsp_disconnect(struct rtsp_session *); // closes the connection and all that belongs to it

#endif
