// What a session says to an RTSP server and hears from it: connecting, DESCRIBE, SETUP, PLAY,
// keep-alives, TEARDOWN, and the ways round where a server wants it otherwise: challenges,
// redirections, another URL of the track, TCP instead of UDP. Never blocks. One thread uses it.
//
// Functions that return int give 0, or a negative errno by which the dialogue has ended: `ended`
// and `why` say so then.
#ifndef FRAMED_DAEMON_RTSP_RTSP_DIALOGUE_H
#define FRAMED_DAEMON_RTSP_RTSP_DIALOGUE_H

#include "daemon/rtsp/rtsp_carriage.h"
#include "daemon/rtsp/rtsp_exchange.h"
#include "daemon/rtsp/rtsp_keep_alive.h"
#include "daemon/rtsp/rtsp_memory.h"
#include "daemon/rtsp/rtsp_track.h"
#include "daemon/rtsp/rtsp_url.h"

enum rtsp_phase { // in this order, but for ways round
    RTSP_CONNECTING,
    RTSP_DESCRIBING,
    RTSP_SETTING_UP,
    RTSP_STARTING, // PLAY was asked for
    RTSP_PLAYING,
    RTSP_LEAVING, // TEARDOWN, which may wait for the reply to another request
};

struct rtsp_dialogue {
    const struct camera_config *config;
    struct rtsp_memory *memory;
    enum rtsp_phase phase;
    struct rtsp_url url;      // of the server that it is connected to
    char place[300];          // the same for people: "192.0.2.10:554"
    enum transport transport; // to ask for
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
    bool other_formats[128]; // payload types that the camera may send in place of ours
    bool other_codecs[128];  // payload types that the camera names for other codecs
    bool dynamic_rate;       // the server understands x-Dynamic-Rate
    bool merged;             // the track's URL is made as RFC 3986 says
    char base[RTSP_URL_MAX], aggregate[RTSP_URL_MAX];
    // CLOCK_MONOTONIC; 0: not yet. `now_ns` and `media_ns` are set by the session.
    int64_t now_ns, media_ns, play_ns, leave_ns;
    int ended; // 0: it goes on
    char why[512];
};

int rtsp_dialogue_begin(struct rtsp_dialogue *);   // begins to connect to `url`
int rtsp_dialogue_connect(struct rtsp_dialogue *); // goes on with it; -EAGAIN: not yet
int rtsp_dialogue_take(struct rtsp_dialogue *, const struct rtsp_message *);
int rtsp_dialogue_start(struct rtsp_dialogue *); // PLAY is answered, or counts as answered
int rtsp_dialogue_keep_alive(struct rtsp_dialogue *);
int rtsp_dialogue_fall_back(struct rtsp_dialogue *); // to TCP, on another connection
int rtsp_dialogue_leave(struct rtsp_dialogue *);     // says goodbye
int rtsp_dialogue_finish(struct rtsp_dialogue *);    // has said goodbye, or waits no longer
const char *rtsp_dialogue_method(const struct rtsp_dialogue *); // that the phase is about
// Ends it, unless it has ended before. Returns `rc`.
__attribute__((format(printf, 3, 4))) int rtsp_dialogue_end(struct rtsp_dialogue *, int rc,
                                                            const char *format, ...);
void rtsp_dialogue_close(struct rtsp_dialogue *); // frees what it holds

#endif
