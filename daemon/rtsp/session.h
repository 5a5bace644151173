// One session with an RTSP camera, from connecting to TEARDOWN, with the detours that servers
// require: challenges, redirections, another URL of the track, TCP instead of UDP. One thread uses
// a session; all waits but those for TEARDOWN's reply end within 50 ms of *stop.
#ifndef FRAMED_DAEMON_RTSP_SESSION_H
#define FRAMED_DAEMON_RTSP_SESSION_H

#include "config/config.h"
#include "daemon/rtsp/carriage.h"
#include "daemon/rtsp/messages.h"
#include "daemon/rtsp/rtsp_track.h"
#include "daemon/rtsp/url.h"

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
    unsigned address;     // of the host's addresses, the one that answered last
};

struct rtsp_session {
    const struct camera_config *config;
    struct rtsp_memory *memory;
    const _Atomic bool *stop;
    struct rtsp_url url;      // of the connected server
    char place[300];          // the same for people: "192.0.2.10:554"
    enum transport transport; // to request
    bool fell_back;           // from UDP
    int redirects;
    struct rtsp_connection connection; // its fd is -1 before it is connected
    struct rtsp_reader reader;
    struct rtsp_carriage carriage;
    // The requests of this connection; one is open at a time.
    const char *method; // of the last request
    bool open;          // it waits for an answer
    char request_url[RTSP_URL_MAX], request_headers[512];
    struct rtsp_message reply; // to the last request; valid until the next input
    int64_t asked_ns;          // when the last one was sent
    uint32_t cseq, abandoned;  // abandoned: the request whose reply is not awaited
    struct rtsp_auth auth;
    bool is_signed, repeated, accepted; // accepted: the camera has accepted a signed request
    char session_id[512];               // from SETUP's reply; "": none so far
    int timeout_s;                      // the smallest one named; 0: none
    bool leaving;                       // what arrives is no longer of interest

    struct rtsp_track *track; // from SETUP's reply on; NULL: none
    bool avoids;              // RTP packets of the SSRC `avoided` came before SETUP's reply
    uint32_t avoided;
    struct sdp_media media; // the chosen track; SDP_OTHER: not described so far
    bool other_video;
    bool other_formats[128]; // payload types that the camera may send instead of ours
    bool other_codecs[128];  // payload types announced for other codecs
    bool dynamic_rate;       // the server understands x-Dynamic-Rate
    bool merged;             // the track's URL is resolved as in RFC 3986
    char base[RTSP_URL_MAX], aggregate[RTSP_URL_MAX];
    int64_t timeout_ns;    // of the session, without a request
    int64_t keep_alive_ns; // when the next request is due; INT64_MAX: never
    bool keep_alive_sent;
    bool get_listed; // a reply lists GET_PARAMETER
    // CLOCK_MONOTONIC; 0: unset.
    int64_t now_ns, due_ns;         // due_ns: when to act next
    int64_t until_ns;               // limit of connecting, up to the answer to PLAY
    int64_t answer_ns;              // how long to wait for any sign of life while connecting
    int64_t tried_ns;               // when rtsp_session_play began
    int64_t play_ns;                // when PLAY was answered in this connection
    int64_t heard_ns, media_ns;     // when anything, and when media arrived last
    int64_t parted_ns;              // when BYE arrived last
    int64_t report_ns, keyframe_ns; // when the last one was sent
    bool wants_keyframe;            // set by the owner: requests one, at most once a second
    bool channel_logged;
    bool datagram_came; // from the camera: UDP works
    int other_format;   // packets in a row
    // unit_ns: the last unit arrived; 0: none. waited_ns: time since then without network data,
    // except the present one, which began at dry_ns (0: there is data).
    int64_t unit_ns, dry_ns, waited_ns;
    int ended;     // the negative errno; 0: not ended
    char why[512]; // one sentence for people on why it ended, without a secret; "": it has not
};

// Returns 0, -EINVAL (the URL) or -ENOMEM: there is no session then. The configuration, the memory
// and the flag outlive the session.
int rtsp_session_open(struct rtsp_session **ret, const struct camera_config *, struct rtsp_memory *,
                      const _Atomic bool *stop);
// Connects up to sending PLAY, until `until_ns` at the latest. Returns 0; -EAGAIN: nothing arrived
// for `answer_ns` once TCP was connected, and another session may be tried; -ECANCELED: *stop; or
// why the session ended: -ENODATA: BYE or the connection's regular end; -EACCES: user or password
// refused; -EPERM: the stream is forbidden (403); -EUSERS: no room for a session (453, 503);
// -ETIMEDOUT; -EPROTO: no RTSP; -ETIME: the media are not of the announced codec; -EINVAL: no video
// track; -EMEDIUMTYPE: video, but none in H.264, H.265 or JPEG; -EKEYREJECTED: the certificate;
// another negative errno.
int rtsp_session_play(struct rtsp_session *, int64_t until_ns, int64_t answer_ns);
// Returns 0 with the next access unit, valid until the next call; -EAGAIN: none was complete at
// now_ns, and 50 ms at most have been waited since; -ERESTART: call rtsp_session_play again, for
// the camera redirects us, or UDP fails; -ECANCELED; or why the session ended, once the units
// before its end have been read.
int rtsp_session_read(struct rtsp_session *, struct rtsp_unit *ret);
struct rtp_statistics rtsp_session_statistics(const struct rtsp_session *);
const char *rtsp_session_transport(const struct rtsp_session *); // "tcp", "udp", "multicast"
void rtsp_session_ping(struct rtsp_session *); // a request now: an answer means idle, not dead
// Sends TEARDOWN, waits for the reply for `limit_ns` and 0.5 s at most, even if *stop, and closes.
// Accepts NULL.
void rtsp_session_close(struct rtsp_session *, int64_t limit_ns);

// --- private: dialogue.c asks and takes replies, session.c receives media and keeps time.
// Functions that return int return 0, -EAGAIN: nothing has arrived, -ERESTART: rtsp_session_play
// connects again, or a negative errno that has ended the session.

int rtsp_take_input(struct rtsp_session *);                        // the next item; does not wait
void rtsp_wait_for_input(struct rtsp_session *, int64_t until_ns); // for 50 ms at most
int rtsp_take_message(struct rtsp_session *, const struct rtsp_message *);
int rtsp_start(struct rtsp_session *);      // PLAY is answered, or counts as answered
int rtsp_keep_alive(struct rtsp_session *); // abandons a request that is unanswered
int rtsp_fall_back(struct rtsp_session *);  // to TCP, on another connection
// Ends the session, unless it has ended before, and returns `rc`. The reason is the place, and then
// the text.
__attribute__((format(printf, 3, 4))) int rtsp_end(struct rtsp_session *, int rc,
                                                   const char *format, ...);
// Does the same; `what` stands before the place ("cannot answer"), and the error behind it.
int rtsp_end_by_error(struct rtsp_session *, int rc, const char *what);
int rtsp_end_late(struct rtsp_session *); // does the same for connect_timeout

#endif
