// A session's requests to an RTSP server and their replies: connecting, DESCRIBE, SETUP, PLAY,
// keep-alives, TEARDOWN, and the detours that a server requires: challenges, redirections, another
// URL of the track, TCP instead of UDP. Never blocks. One thread uses it.
//
// Functions that return int return 0, or a negative errno that has ended the dialogue: `ended` and
// `why` hold it and its reason.
#ifndef FRAMED_DAEMON_RTSP_RTSP_DIALOGUE_H
#define FRAMED_DAEMON_RTSP_RTSP_DIALOGUE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/rtsp/carriage.h"
#include "daemon/rtsp/depacketizer.h"
#include "daemon/rtsp/requests.h"
#include "daemon/rtsp/rtsp_track.h"
#include "daemon/rtsp/url.h"

// The facts about a camera that survive its sessions. The owner keeps them, zeroed at first; the
// session reads and writes them.
struct rtsp_memory {
    struct picture_end_verdict verdict;
    uint64_t sdp_hash;      // of the verdict's track
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

// Keeps an RTSP session alive: chooses the request and its period, and detects a request that a
// camera ignores.
struct rtsp_keep_alive {
    int64_t timeout_ns, play_ns; // of the session; when PLAY was answered
    int64_t due_ns;              // of the next request; INT64_MAX: none
    bool get_listed;             // OPTIONS' reply lists GET_PARAMETER
    bool sent;
};

enum rtsp_phase { // in this order, apart from detours
    RTSP_CONNECTING,
    RTSP_DESCRIBING,
    RTSP_SETTING_UP,
    RTSP_STARTING, // PLAY was sent
    RTSP_PLAYING,
    RTSP_LEAVING, // TEARDOWN, which may wait for the reply to another request
};

struct rtsp_dialogue {
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
    struct rtsp_exchange exchange;
    struct rtsp_keep_alive keep_alive;
    struct rtsp_carriage carriage;
    struct rtsp_track *track; // from SETUP's reply on
    bool avoids;              // RTP packets of the SSRC `avoided` came before SETUP's reply
    uint32_t avoided;
    struct sdp_media media;
    bool has_media, other_video;
    bool other_formats[128]; // payload types that the camera may send instead of ours
    bool other_codecs[128];  // payload types announced for other codecs
    bool dynamic_rate;       // the server understands x-Dynamic-Rate
    bool merged;             // the track's URL is resolved as in RFC 3986
    char base[RTSP_URL_MAX], aggregate[RTSP_URL_MAX];
    // CLOCK_MONOTONIC; 0: unset. The session sets `now_ns` and `media_ns`.
    int64_t now_ns, media_ns, play_ns, leave_ns;
    int ended; // the negative errno; 0: not ended
    char why[512];
};

int rtsp_dialogue_begin(struct rtsp_dialogue *);   // begins to connect to `url`
int rtsp_dialogue_connect(struct rtsp_dialogue *); // continues; -EAGAIN: not connected so far
int rtsp_dialogue_take(struct rtsp_dialogue *, const struct rtsp_message *);
int rtsp_dialogue_start(struct rtsp_dialogue *); // PLAY is answered, or counts as answered
int rtsp_dialogue_keep_alive(struct rtsp_dialogue *);
int rtsp_dialogue_fall_back(struct rtsp_dialogue *); // to TCP, on another connection
int rtsp_dialogue_leave(struct rtsp_dialogue *);     // sends BYE and TEARDOWN
int rtsp_dialogue_finish(struct rtsp_dialogue *);    // after TEARDOWN: ends or reconnects
const char *rtsp_dialogue_method(const struct rtsp_dialogue *); // of the present phase
// Ends the dialogue, unless it has ended before. Returns `rc`.
__attribute__((format(printf, 3, 4))) int rtsp_dialogue_end(struct rtsp_dialogue *, int rc,
                                                            const char *format, ...);
void rtsp_dialogue_close(struct rtsp_dialogue *); // frees all members

#endif
