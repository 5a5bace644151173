#include "daemon/rtsp/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/number.h"
#include "daemon/rtsp/carriage.h"
#include "daemon/rtsp/messages.h"
#include "daemon/rtsp/url.h"

static const int64_t SECOND_NS = 1000000000,
                     PARTED_NS = 500000000, // after BYE: some cameras continue as another source
    GOODBYE_NS = 500000000,                 // how long TEARDOWN's reply may take
    STOPPED_NS = 400000000;                 // without media: the camera stopped sending
enum {
    REDIRECTS_MAX = 5,
    ROUNDS_MAX = 512,      // items of input in one step
    REPORT_PERIOD = 5,     // seconds; some cameras end a session after 10 s without a report
    UDP_SILENCE = 3,       // seconds after PLAY: then TCP
    MULTICAST_SILENCE = 1, // seconds after PLAY: then from any sender
    UNANSWERED_PLAY = 2,   // seconds, while media flow: PLAY counts as answered
    TIMEOUT_DEFAULT = 60,  // seconds that a session lives without a request
    KEEP_ALIVE_MAX = 30,   // seconds between two requests
    PING_PATIENCE = 1,     // seconds that a ping waits for an earlier request
    FORMAT_SILENCE = 1,    // seconds without a packet of our format
    OTHER_FORMAT = 16,     // packets of another format in a row: the camera sends that one
    WAITED_SHARE = 10,     // 1/10 of the time between units must be spent waiting
};

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
    struct rtsp_exchange exchange;
    struct rtsp_carriage carriage;
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

// --- the end

// Chooses the next keep-alive method if media stopped as if the camera had ignored this one.
// Servers check their sessions now and then, and count from PLAY or from a later request.
static void learn_keep_alive(struct rtsp_session *s)
{
    const int64_t lived_ns = s->media_ns - s->play_ns;
    if (s->phase == RTSP_PLAYING && !s->memory->keep_alive_proven && s->keep_alive_sent &&
        lived_ns > s->timeout_ns - 2 * SECOND_NS &&
        lived_ns < s->timeout_ns * 3 / 2 + 5 * SECOND_NS)
        s->memory->keep_alive = (s->memory->keep_alive + 1) % 3;
}

// Ends the session, unless it has ended before, and returns `rc`.
static int end_with(struct rtsp_session *s, int rc, const char *why)
{
    if (s->ended)
        return rc;
    log_scrub(s->why, sizeof s->why, why); // may contain the camera's own words
    learn_keep_alive(s);
    s->memory->tcp_fails |= s->fell_back && !s->media_ns && rc != -ESHUTDOWN;
    if (s->track)
        rtsp_track_end(s->track);
    s->ended = rc;
    return rc;
}

// The reason is the place, and then the text.
__attribute__((format(printf, 3, 4))) static int end(struct rtsp_session *s, int rc,
                                                     const char *format, ...)
{
    va_list arguments;
    char why[sizeof s->why];
    const int n = snprintf(why, sizeof why, "%s ", s->place);
    va_start(arguments, format);
    vsnprintf(why + n, sizeof why - (size_t)n, format, arguments);
    va_end(arguments);
    return end_with(s, rc, why);
}

// `what` stands before the place ("cannot answer").
static int end_by_error(struct rtsp_session *s, int rc, const char *what)
{
    char why[sizeof s->why];
    snprintf(why, sizeof why, "%s %s: %s", what, s->place, strerror(-rc));
    return end_with(s, rc, why);
}

static const char *method_of(const struct rtsp_session *s)
{
    static const char *const methods[] = {"connect", "DESCRIBE", "SETUP", "PLAY", "", "TEARDOWN"};
    return methods[s->phase];
}

// --- connecting

static void close_connection(struct rtsp_session *s)
{
    rtsp_carriage_close(&s->carriage);
    rtsp_track_close(s->track);
    rtsp_connection_close(s->connection);
    rtsp_reader_close(&s->reader);
    s->track = NULL;
    s->connection = NULL;
    s->avoids = false;
}

// Begins to connect to `url`.
static int begin_connection(struct rtsp_session *s)
{
    close_connection(s);
    rtsp_exchange_reset(&s->exchange);
    s->exchange.auth.encrypted = s->url.tls;
    s->exchange.auth.digest_offered |= s->memory->digest_offered;
    s->phase = RTSP_CONNECTING;
    s->merged = false;
    snprintf(s->place, sizeof s->place, strchr(s->url.host, ':') ? "[%s]:%d" : "%s:%d", s->url.host,
             s->url.port);
    if (s->url.tls)
        s->transport = TRANSPORT_TCP; // over UDP media would go unencrypted
    int rc = rtsp_reader_open(&s->reader);
    if (rc == 0)
        rc = rtsp_connection_open(&s->connection, s->url.host, s->url.port,
                                  s->url.tls ? &s->config->tls : NULL, s->now_ns);
    return rc < 0 ? end_by_error(s, rc, "cannot begin to connect to") : 0;
}

static int send_request(struct rtsp_session *s, char *request, int bytes)
{
    char what[32];
    int rc = bytes < 0 ? bytes : rtsp_connection_write(s->connection, request, (size_t)bytes);
    explicit_bzero(request, RTSP_REQUEST_MAX); // Basic carries the password
    if (rc == 0)
        return 0;
    snprintf(what, sizeof what, "cannot send %s to", s->exchange.method);
    return end_by_error(s, rc, what);
}

static int ask(struct rtsp_session *s, const char *method, const char *url, const char *headers)
{
    char request[RTSP_REQUEST_MAX];
    return send_request(s, request,
                        rtsp_exchange_ask(&s->exchange, method, url, headers, s->now_ns, request));
}

static int connect_further(struct rtsp_session *s)
{
    char why[256];
    int rc = rtsp_connection_connect(s->connection, s->now_ns, why, sizeof why);
    if (rc == -EAGAIN)
        return rc;
    if (rc == -ECONNREFUSED && rtsp_url_take_other_port(&s->url))
        return begin_connection(s);
    if (rc < 0)
        return end(s, rc, "%s%s", why,
                   s->url.port_changed ? " (port 322, which is tried first, refused the connection)"
                                       : "");
    s->phase = RTSP_DESCRIBING;
    return ask(s, "DESCRIBE", s->url.text, "Accept: application/sdp\r\n");
}

// Keeps user and password only for the host and port that they were given for.
static int redirect(struct rtsp_session *s, const struct rtsp_message *message)
{
    struct rtsp_url to;
    const char *location = rtsp_message_header(message, "Location", NULL);
    if (!location || rtsp_url_parse(&to, location) < 0)
        return end(s, -EPROTO, "sends us elsewhere, but not to a URL of RTSP");
    if (s->redirects++ >= REDIRECTS_MAX)
        return end(s, -ELOOP, "is the end of %d redirections: that many are followed",
                   REDIRECTS_MAX);
    if (s->url.tls && !to.tls)
        return end(s, -EPROTO, "sends us from rtsps to rtsp, which framed refuses");
    if (!strcasecmp(to.host, s->url.host) && to.port == s->url.port && !*to.user) {
        memcpy(to.user, s->url.user, sizeof to.user);
        memcpy(to.password, s->url.password, sizeof to.password);
    }
    s->url = to;
    return begin_connection(s);
}

// --- leaving

// After TEARDOWN: ends or reconnects.
static int finish(struct rtsp_session *s)
{
    if (!s->reconnects)
        return end(s, -ESHUTDOWN, "was left");
    s->reconnects = false;
    return begin_connection(s);
}

static int ask_teardown(struct rtsp_session *s)
{
    if (!s->exchange.session[0])
        return finish(s);
    return ask(s, "TEARDOWN", *s->aggregate ? s->aggregate : s->url.text, "");
}

// Sends BYE and TEARDOWN.
static int leave(struct rtsp_session *s)
{
    uint8_t bye[RTCP_REPORT_MAX];
    const bool was_playing = s->phase == RTSP_PLAYING, connected = s->phase != RTSP_CONNECTING;
    if (s->now_ns - s->media_ns > STOPPED_NS)
        learn_keep_alive(s);
    s->phase = RTSP_LEAVING;
    s->leave_ns = s->now_ns + GOODBYE_NS;
    if (!connected)
        return finish(s);
    if (was_playing) {
        rtsp_carriage_send(&s->carriage, s->connection, bye,
                           rtsp_track_bye(s->track, s->now_ns, bye));
        rtsp_exchange_abandon(&s->exchange);
    }
    // SETUP's reply has the session's id, and nothing may be sent between PLAY and its reply.
    return s->exchange.method ? 0 : ask_teardown(s);
}

// Continues with TCP, on another connection.
static int fall_back(struct rtsp_session *s)
{
    s->transport = TRANSPORT_TCP;
    s->fell_back = s->reconnects = true;
    return leave(s);
}

// --- keep-alive

// Schedules the next request.
static void schedule_keep_alive(struct rtsp_session *s)
{
    s->keep_alive_ns = s->now_ns + bounds_min(s->timeout_ns / 2, KEEP_ALIVE_MAX * SECOND_NS);
}

// Abandons a request that is unanswered when the next one is due.
static int keep_alive(struct rtsp_session *s)
{
    // EvoStream accepts GET_PARAMETER without listing it, so it comes second at the latest.
    static const char *const methods[2][3] = {{"OPTIONS", "GET_PARAMETER", "SET_PARAMETER"},
                                              {"GET_PARAMETER", "OPTIONS", "SET_PARAMETER"}};
    rtsp_exchange_abandon(&s->exchange);
    if (s->media_ns - s->play_ns > 3 * s->timeout_ns)
        s->memory->keep_alive_proven = true;
    s->keep_alive_sent = true;
    schedule_keep_alive(s);
    return ask(s, methods[s->get_listed][s->memory->keep_alive % 3], s->base, "");
}

// --- answers

static int end_refused(struct rtsp_session *s)
{
    struct rtsp_memory *memory = s->memory;
    memory->first_challenge = s->exchange.other_challenge && !memory->first_challenge;
    if (!*s->url.user)
        return end(s, -EACCES, "wants a user name and a password%s",
                   s->redirects ? ", and those of the URL stay with its host and port" : "");
    if (s->exchange.auth.basic_refused && !s->exchange.is_signed)
        return end(s, -EPERM,
                   "offers Basic alone after Digest: framed sends no password in clear to it");
    return end(s, -EACCES, "refused the user name or password");
}

static int end_by_status(struct rtsp_session *s, const struct rtsp_message *reply)
{
    int rc = -EPROTO;
    if (reply->status == 403)
        rc = -EPERM; // not about the password: only 401 is
    else if (reply->status == 404)
        rc = -ENOENT;
    else if (reply->status == 453 || reply->status == 503)
        rc = -EUSERS;
    return end(s, rc, "answered %s with %d %.60s%s", method_of(s), reply->status,
               reply->reason ? reply->reason : "",
               rc == -EPERM ? ": this user or this box may not see the stream" : "");
}

static int ask_setup(struct rtsp_session *s)
{
    char headers[256], url[RTSP_URL_MAX];
    rtsp_carriage_close(&s->carriage);
    s->phase = RTSP_SETTING_UP;
    int rc = rtsp_carriage_ask(&s->carriage, s->transport, s->connection, headers, sizeof headers);
    if (rc == 0)
        rc = rtsp_url_of_track(url, s->base, s->media.control, s->merged);
    if (rc < 0)
        return end_by_error(s, rc, "cannot set up the video of");
    if (s->dynamic_rate)
        strcat(headers, "x-Dynamic-Rate: 0\r\n");
    return ask(s, "SETUP", url, headers);
}

static void choose_media(struct rtsp_session *s, const struct sdp *sdp, int chosen)
{
    s->media = sdp->media[chosen];
    s->other_video = false;
    memset(s->other_formats, 0, sizeof s->other_formats);
    memset(s->other_codecs, 0, sizeof s->other_codecs);
    for (int i = 0; i < sdp->n_media; i++) {
        const struct sdp_media *other = &sdp->media[i];
        const bool same_track = other->section == s->media.section;
        if (i == chosen)
            continue;
        s->other_codecs[other->payload_type] |= *other->encoding && other->codec != s->media.codec;
        s->other_formats[other->payload_type] |= same_track && other->codec != SDP_OTHER;
        s->other_video |= other->video && !same_track;
    }
}

static bool is_same_track(const struct sdp_media *a, const struct sdp_media *b)
{
    return a->codec == b->codec && a->payload_type == b->payload_type && a->width == b->width &&
           a->height == b->height && a->sets_bytes == b->sets_bytes &&
           memcmp(a->sets, b->sets, (size_t)a->sets_bytes) == 0;
}

// Drops the learnt picture ends, and logs the choice, if the track is not the last connection's.
static void recall_track(struct rtsp_session *s, const struct sdp *sdp, int chosen)
{
    char name[SDP_NAME_MAX], others[SDP_MEDIA_MAX * (SDP_NAME_MAX + 2)];
    if (is_same_track(&s->media, &s->memory->media))
        return;
    s->memory->verdict = (struct picture_end_verdict){0};
    s->memory->media = s->media;
    const int n = sdp_list_videos(sdp, chosen, others, sizeof others);
    sdp_media_name(&s->media, name);
    if (n > 0)
        log_event(LOG_LEVEL_INFO, "%s offers %d video tracks: framed takes %s and passes over %s",
                  s->place, n + 1, name, others);
}

static int read_description(struct rtsp_session *s, const struct rtsp_message *reply,
                            struct sdp *sdp)
{
    char offered[256];
    int rc = rtsp_url_base(s->base, rtsp_message_header(reply, "Content-Base", NULL),
                           rtsp_message_header(reply, "Content-Location", NULL), s->url.text);
    if (rc == 0)
        rc = sdp_parse(sdp, reply->body_bytes ? reply->body : "", reply->body_bytes);
    if (rc == 0)
        rc = rtsp_url_of_track(s->aggregate, s->base, sdp->control, false);
    if (rc < 0)
        return end(s, -EPROTO, "describes its stream in no way that framed can read");
    if (strstr(sdp->control, "://"))
        memcpy(s->base, s->aggregate, sizeof s->base);
    const int chosen = sdp_choose_video(sdp, s->memory->payload_type);
    if (chosen < 0) {
        rc = sdp_list_videos(sdp, -1, offered, sizeof offered) > 0 ? -EMEDIUMTYPE : -EINVAL;
        sdp_list_media(sdp, offered, sizeof offered);
        return end(s, rc, "offers no H.264, H.265 or JPEG video, but: %s", offered);
    }
    if (s->media.codec != SDP_OTHER && sdp->media[chosen].codec != s->media.codec)
        return end(s, -EINVAL, "offers another codec than a moment ago");
    choose_media(s, sdp, chosen);
    s->dynamic_rate = rtsp_message_header(reply, "x-Accept-Dynamic-Rate", NULL);
    recall_track(s, sdp, chosen);
    return ask_setup(s);
}

static int take_description(struct rtsp_session *s, const struct rtsp_message *reply)
{
    if (reply->status != 200)
        return end_by_status(s, reply);
    struct sdp *sdp = malloc(sizeof *sdp);
    int rc = sdp ? read_description(s, reply, sdp)
                 : end_by_error(s, -ENOMEM, "cannot read the description of");
    free(sdp);
    return rc;
}

// Returns true if `status` may mean a wrong URL and the track's URL has another form.
static bool may_merge(const struct rtsp_session *s, int status)
{
    char appended[RTSP_URL_MAX], merged[RTSP_URL_MAX];
    const bool wrong =
        status == 400 || status == 404 || status == 451 || status == 455 || status == 503;
    return wrong && !s->merged &&
           rtsp_url_of_track(appended, s->base, s->media.control, false) == 0 &&
           rtsp_url_of_track(merged, s->base, s->media.control, true) == 0 &&
           strcmp(appended, merged) != 0;
}

static int take_setup(struct rtsp_session *s, const struct rtsp_message *reply)
{
    if (reply->status == 461 && s->transport != TRANSPORT_TCP) {
        s->transport = TRANSPORT_TCP;
        s->fell_back = true;
        return ask_setup(s);
    }
    if (may_merge(s, reply->status)) {
        s->merged = true;
        return ask_setup(s);
    }
    if (reply->status != 200)
        return end_by_status(s, reply);
    int rc = rtsp_carriage_answer(&s->carriage, rtsp_message_header(reply, "Transport", NULL),
                                  &s->media, s->connection);
    if (rc == -EXDEV || (rc < 0 && s->transport == TRANSPORT_MULTICAST))
        return fall_back(s);
    if (rc == 0)
        rc = rtsp_track_open(&s->track, &(struct rtsp_track_options){
                                            .media = &s->media,
                                            .verdict = &s->memory->verdict,
                                            .ordered = s->transport == TRANSPORT_TCP,
                                            .other_video = s->other_video,
                                            .other_codecs = s->other_codecs,
                                            .ssrc = s->carriage.ssrc,
                                            .avoids = s->avoids,
                                            .avoided = s->avoided,
                                        });
    if (rc < 0)
        return end_by_error(s, rc, "cannot receive the video of");
    if (s->transport == TRANSPORT_TCP)
        s->reader.framing = (struct rtsp_framing){s->carriage.channels[0], s->carriage.channels[1],
                                                  s->media.payload_type};
    rtsp_carriage_punch(&s->carriage, s->media.payload_type, rtsp_track_ssrc(s->track));
    s->phase = RTSP_STARTING;
    return ask(s, "PLAY", s->aggregate, "Range: npt=0.000-\r\n");
}

// PLAY is answered, or counts as answered.
static int start(struct rtsp_session *s)
{
    const int timeout_s = s->exchange.timeout_s;
    s->phase = RTSP_PLAYING;
    s->play_ns = s->now_ns;
    s->timeout_ns = (timeout_s ? timeout_s : TIMEOUT_DEFAULT) * SECOND_NS;
    s->keep_alive_sent = false;
    schedule_keep_alive(s);
    return ask(s, "OPTIONS", s->base, ""); // its reply lists the possible keep-alives
}

static int take_answer(struct rtsp_session *s, const struct rtsp_message *reply)
{
    const char *listed;
    const int status = reply->status;
    if (s->phase == RTSP_LEAVING)
        return strcmp(s->exchange.answered, "TEARDOWN") ? ask_teardown(s) : finish(s);
    if (s->exchange.timeout_s)
        s->memory->session_s = s->exchange.timeout_s;
    if (s->phase != RTSP_PLAYING &&
        (status == 301 || status == 302 || status == 303 || status == 305))
        return redirect(s, reply);
    switch (s->phase) {
    case RTSP_DESCRIBING:
        return take_description(s, reply);
    case RTSP_SETTING_UP:
        return take_setup(s, reply);
    case RTSP_STARTING:
        return status == 200 ? start(s) : end_by_status(s, reply);
    default: // OPTIONS or a keep-alive: any status is fine while media flow
        listed = rtsp_message_header(reply, "Public", NULL);
        s->get_listed |= listed && strcasestr(listed, "GET_PARAMETER");
        return 0;
    }
}

static int take_request(struct rtsp_session *s, const struct rtsp_message *request)
{
    char reply[RTSP_REQUEST_MAX];
    if (!strcmp(request->method, "REDIRECT") && s->phase < RTSP_PLAYING)
        return redirect(s, request);
    if (!strcmp(request->method, "REDIRECT") && s->phase == RTSP_PLAYING)
        return end(s, -ENODATA, "sends us elsewhere");
    const int bytes = rtsp_exchange_reply(request, reply);
    int rc = rtsp_connection_write(s->connection, reply, (size_t)bytes);
    return rc < 0 && rc != -ENOBUFS ? end_by_error(s, rc, "cannot answer") : 0;
}

static int take_message(struct rtsp_session *s, const struct rtsp_message *message)
{
    char request[RTSP_REQUEST_MAX];
    if (!message->status)
        return take_request(s, message);
    const enum rtsp_answer answer = rtsp_exchange_take(&s->exchange, message);
    s->memory->digest_offered |= s->exchange.auth.digest_offered;
    switch (answer) {
    case RTSP_ANSWER_NONE:
        return 0;
    case RTSP_ANSWER_TAKEN:
        return take_answer(s, message);
    case RTSP_ANSWER_CHALLENGE:
        if (s->phase == RTSP_LEAVING && !*s->exchange.session)
            return finish(s); // no session to end, so no password is tried
        return send_request(s, request, rtsp_exchange_repeat(&s->exchange, s->now_ns, request));
    case RTSP_ANSWER_REFUSED:
        break;
    }
    if (s->phase == RTSP_LEAVING)
        return finish(s);
    if (s->phase != RTSP_PLAYING)
        return end_refused(s);
    s->keep_alive_ns = INT64_MAX; // more refusals might lock the account; media still flow
    return 0;
}

// --- media

// Some cameras write an older session's packets to its descriptor, which now has our connection.
static void note_left_over(struct rtsp_session *s, const uint8_t *data, size_t bytes)
{
    struct rtp_packet packet;
    if (rtp_is_rtcp(data, bytes) || rtp_parse(&packet, data, bytes) < 0)
        return;
    s->avoids = true;
    s->avoided = packet.ssrc;
}

// Ends the session if the camera sends only another of the formats offered for the track.
static int note_other_format(struct rtsp_session *s, const uint8_t *data, size_t bytes)
{
    struct rtp_packet packet;
    const bool flows = s->media_ns && s->now_ns - s->media_ns < FORMAT_SILENCE * SECOND_NS;
    if (flows || rtp_is_rtcp(data, bytes) || rtp_parse(&packet, data, bytes) < 0 ||
        !s->other_formats[packet.payload_type] || ++s->other_format < OTHER_FORMAT)
        return RTSP_TRACK_NOTHING;
    s->memory->payload_type = packet.payload_type;
    return end(s, -ETIME, "sends payload type %d, not %d as it prefers", packet.payload_type,
               s->media.payload_type);
}

static void note_media(struct rtsp_session *s)
{
    s->other_format = 0;
    s->media_ns = s->now_ns;
    if (!s->memory->source_change_logged && rtsp_track_statistics(s->track).source_changes > 0) {
        s->memory->source_change_logged = true;
        log_event(LOG_LEVEL_INFO, "%s changed the source (SSRC) of its stream: framed follows it",
                  s->place);
    }
    rtsp_carriage_confirm(&s->carriage);
    s->memory->udp_fails |= s->fell_back && !s->carriage.sockets;
}

// Returns enum rtsp_track_got, or a negative errno.
static int take_packet(struct rtsp_session *s, const uint8_t *data, size_t bytes)
{
    if (!s->track && s->phase <= RTSP_SETTING_UP)
        note_left_over(s, data, bytes);
    if (!s->track || s->phase == RTSP_LEAVING)
        return RTSP_TRACK_NOTHING;
    int got = rtsp_track_put(s->track, data, bytes, s->now_ns);
    if (got < 0)
        return end_by_error(s, got, "cannot receive from");
    if (got == RTSP_TRACK_NOTHING)
        return note_other_format(s, data, bytes);
    s->heard_ns = s->now_ns;
    if (got == RTSP_TRACK_BYE)
        s->parted_ns = s->now_ns;
    if (got == RTSP_TRACK_MEDIA)
        note_media(s);
    return got;
}

static int take_frame(struct rtsp_session *s, const struct rtsp_frame *frame)
{
    int *channels = s->carriage.channels;
    if (s->carriage.transport != TRANSPORT_TCP)
        return 0;
    const bool ours = frame->channel == channels[0] || frame->channel == channels[1];
    if (!ours && (s->media_ns || rtp_is_rtcp(frame->data, frame->bytes))) {
        if (!s->channel_logged)
            log_event(LOG_LEVEL_INFO, "%s sends on channel %d too, which was not asked for",
                      s->place, frame->channel);
        s->channel_logged = true;
        return 0;
    }
    int got = take_packet(s, frame->data, frame->bytes);
    if (!ours && got == RTSP_TRACK_MEDIA) { // the camera uses channels of its own
        channels[0] = frame->channel;
        channels[1] = frame->channel + 1;
        s->reader.framing.rtp_channel = channels[0];
        s->reader.framing.rtcp_channel = channels[1];
    }
    return got < 0 ? got : 0;
}

// --- input

// `n`: the result of a read: 0 or a negative errno.
static int end_connection(struct rtsp_session *s, ssize_t n)
{
    if (s->phase == RTSP_LEAVING)
        return finish(s);
    if (n < 0)
        return end_by_error(s, (int)n, "lost the connection to");
    if (s->phase == RTSP_PLAYING)
        return end(s, -ENODATA, "ended the connection");
    return end(s, -ECONNRESET, "hung up instead of answering %s", method_of(s));
}

static void note_network_data(struct rtsp_session *s)
{
    if (s->dry_ns)
        s->waited_ns += s->now_ns - s->dry_ns;
    s->dry_ns = 0;
}

// Returns true if the session has waited for the unit. Packets get their time when they are read:
// if the owner is slow, they are ready before, and the session hardly waits. A wait inside a unit
// counts: some cameras spread a unit's packets over the whole interval.
static bool has_waited(const struct rtsp_session *s)
{
    const int64_t waited_ns = s->waited_ns + (s->dry_ns ? s->now_ns - s->dry_ns : 0);
    return s->unit_ns && waited_ns && WAITED_SHARE * waited_ns >= s->now_ns - s->unit_ns;
}

static int read_network(struct rtsp_session *s)
{
    const uint8_t *datagram;
    size_t room;
    ssize_t n = rtsp_carriage_read(&s->carriage, &datagram);
    if (n >= 0) {
        note_network_data(s);
        s->datagram_came = true;
        int got = take_packet(s, datagram, (size_t)n);
        return got < 0 ? got : 0;
    }
    uint8_t *to = rtsp_reader_room(&s->reader, &room);
    n = rtsp_connection_read(s->connection, to, room);
    if (n == -EAGAIN && !s->dry_ns)
        s->dry_ns = s->now_ns;
    if (n <= 0)
        return n == -EAGAIN ? -EAGAIN : end_connection(s, n);
    note_network_data(s);
    s->heard_ns = s->now_ns;
    rtsp_reader_add(&s->reader, (size_t)n);
    return 0;
}

static int take_input(struct rtsp_session *s)
{
    struct rtsp_message message;
    struct rtsp_frame frame;
    switch (rtsp_reader_next(&s->reader, &message, &frame)) {
    case RTSP_ITEM_MESSAGE:
        return take_message(s, &message);
    case RTSP_ITEM_FRAME:
        return take_frame(s, &frame);
    case RTSP_ITEM_LOST:
        if (s->track)
            rtsp_track_lose(s->track);
        return 0;
    case RTSP_ITEM_INVALID:
        if (s->phase == RTSP_LEAVING)
            return finish(s);
        return end(s, -EPROTO, "%s",
                   s->play_ns ? "sends bytes that are no RTSP any more"
                              : "answers, but not in RTSP");
    default:
        return read_network(s);
    }
}

// --- time

enum due {
    DUE_PARTED,    // no other source has followed a BYE
    DUE_OPEN,      // connect_timeout is over
    DUE_GOODBYE,   // TEARDOWN was not answered
    DUE_START,     // PLAY was not answered, but media flow
    DUE_WIDEN,     // the group is silent: perhaps another address sends to it
    DUE_UDP_FAILS, // nothing came over UDP
    DUE_REPORT,
    DUE_KEYFRAME,
    DUE_KEEP_ALIVE,
    DUES,
};

static void find_due_while_playing(const struct rtsp_session *s, int64_t due_ns[DUES])
{
    if (!s->media_ns && rtsp_carriage_is_narrow(&s->carriage))
        due_ns[DUE_WIDEN] = s->play_ns + MULTICAST_SILENCE * SECOND_NS;
    if (s->carriage.sockets && !s->datagram_came && !s->memory->tcp_fails)
        due_ns[DUE_UDP_FAILS] =
            s->play_ns + bounds_max(UDP_SILENCE * SECOND_NS, s->memory->patience_ns);
    due_ns[DUE_REPORT] =
        s->report_ns ? s->report_ns + REPORT_PERIOD * SECOND_NS : s->play_ns + SECOND_NS;
    if (s->wants_keyframe)
        due_ns[DUE_KEYFRAME] = s->keyframe_ns + SECOND_NS;
    due_ns[DUE_KEEP_ALIVE] = s->keep_alive_ns;
}

// Returns when to act next, and on what.
static int64_t find_due(const struct rtsp_session *s, enum due *what)
{
    int64_t due_ns[DUES];
    const bool leaving = s->phase == RTSP_LEAVING, leaves_for_good = leaving && !s->reconnects;
    for (int i = 0; i < DUES; i++)
        due_ns[i] = INT64_MAX;
    if (s->track && !leaving && rtsp_track_statistics(s->track).parted)
        due_ns[DUE_PARTED] = s->parted_ns + PARTED_NS;
    if (!s->media_ns && s->phase != RTSP_PLAYING && !leaves_for_good)
        due_ns[DUE_OPEN] = s->opened_ns + s->config->connect_timeout.ns;
    if (leaving)
        due_ns[DUE_GOODBYE] = s->leave_ns;
    if (s->phase == RTSP_STARTING && s->media_ns)
        due_ns[DUE_START] = s->exchange.asked_ns + UNANSWERED_PLAY * SECOND_NS;
    if (s->phase == RTSP_PLAYING)
        find_due_while_playing(s, due_ns);
    *what = 0;
    for (int i = 1; i < DUES; i++)
        if (due_ns[i] < due_ns[*what])
            *what = (enum due)i;
    return due_ns[*what];
}

static int send_rtcp(struct rtsp_session *s, const uint8_t *packet, size_t bytes)
{
    int rc = rtsp_carriage_send(&s->carriage, s->connection, packet, bytes);
    return rc < 0 ? end_by_error(s, rc, "cannot send reports to") : 0;
}

static int end_late(struct rtsp_session *s)
{
    const bool connected = s->phase != RTSP_CONNECTING;
    return end(s, -ETIMEDOUT, "did not answer %s%swithin %g s", connected ? method_of(s) : "",
               connected ? " " : "", (double)s->config->connect_timeout.ns / 1e9);
}

// Each of them ends the session, or is not due any more afterwards.
static int act(struct rtsp_session *s, enum due what)
{
    uint8_t packet[RTCP_REPORT_MAX];
    switch (what) {
    case DUE_PARTED:
        return end(s, -ENODATA, "ended the stream");
    case DUE_OPEN:
        return end_late(s);
    case DUE_GOODBYE:
        return finish(s);
    case DUE_START:
        rtsp_exchange_abandon(&s->exchange);
        return start(s);
    case DUE_WIDEN:
        rtsp_carriage_widen(&s->carriage);
        return 0;
    case DUE_UDP_FAILS:
        s->opened_ns = s->now_ns;
        return fall_back(s);
    case DUE_REPORT:
        s->report_ns = s->now_ns;
        return send_rtcp(s, packet, rtsp_track_report(s->track, s->now_ns, packet));
    case DUE_KEYFRAME:
        s->wants_keyframe = false;
        s->keyframe_ns = s->now_ns;
        return send_rtcp(s, packet,
                         rtsp_track_ask_keyframe(s->track, !s->media.pli, s->now_ns, packet));
    default:
        return keep_alive(s);
    }
}

static void keep_time(struct rtsp_session *s)
{
    enum due what;
    int rc = s->phase == RTSP_CONNECTING ? 0 : rtsp_connection_flush(s->connection);
    if (rc < 0)
        end_connection(s, rc);
    while (!s->ended && s->now_ns >= find_due(s, &what))
        act(s, what);
}

// --- the owner's calls

static bool read_unit(struct rtsp_session *s)
{
    if (!s->track || s->phase == RTSP_LEAVING)
        return false;
    int rc = rtsp_track_read(s->track, s->now_ns, has_waited(s), &s->unit);
    const char *complaint = rtsp_track_complaint(s->track);
    if (complaint && !s->memory->complaint_logged)
        log_event(LOG_LEVEL_WARNING, "%s sends %s", s->place, complaint);
    s->memory->complaint_logged |= complaint != NULL;
    if (rc < 0 && rc != -EAGAIN)
        end_by_error(s, rc, "cannot receive from");
    if (rc == -EAGAIN && rtsp_track_is_barren(s->track))
        end(s, -ETIME, "sends packets, but no picture of %s in them%s%s", s->media.encoding,
            complaint ? ": " : "", complaint ? complaint : "");
    s->has_unit = rc == 0;
    if (s->has_unit) {
        s->unit_ns = s->now_ns;
        s->waited_ns = s->dry_ns = 0;
    }
    return s->has_unit;
}

static void go_on(struct rtsp_session *s, int64_t now_ns)
{
    s->now_ns = now_ns;
    s->busy = false;
    if (!s->ended)
        keep_time(s);
    for (int i = 0; i < ROUNDS_MAX; i++) {
        if (read_unit(s) || s->ended)
            return;
        if ((s->phase == RTSP_CONNECTING ? connect_further(s) : take_input(s)) == -EAGAIN)
            return;
    }
    s->busy = true;
}

int rtsp_session_open(struct rtsp_session **ret, const struct camera_config *config,
                      struct rtsp_memory *memory, int64_t now_ns)
{
    struct rtsp_session *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->config = config;
    s->memory = memory;
    s->now_ns = s->opened_ns = s->heard_ns = now_ns;
    s->transport = memory->udp_fails ? TRANSPORT_TCP : config->transport;
    s->exchange.user = s->url.user;
    s->exchange.password = s->url.password;
    s->exchange.auth.first_only = memory->first_challenge;
    int rc = rtsp_url_parse(&s->url, config->url);
    if (rc == 0)
        rc = begin_connection(s);
    if (rc < 0)
        rtsp_session_close(s);
    else
        *ret = s;
    return rc;
}

int rtsp_session_poll(const struct rtsp_session *s, struct pollfd *fds, int64_t *due_ns)
{
    enum due what;
    int64_t connection_ns;
    *due_ns = s->busy || s->has_unit || s->ended ? s->now_ns : INT64_MAX;
    if (s->ended)
        return 0;
    int n = rtsp_connection_poll(s->connection, fds, &connection_ns);
    n += rtsp_carriage_poll(&s->carriage, fds + n);
    *due_ns = bounds_min(*due_ns, connection_ns);
    if (s->track && s->phase != RTSP_LEAVING)
        *due_ns = bounds_min(*due_ns, rtsp_track_due_ns(s->track));
    *due_ns = bounds_min(*due_ns, find_due(s, &what));
    return n;
}

int rtsp_session_step(struct rtsp_session *s, int64_t now_ns)
{
    if (!s->has_unit)
        go_on(s, now_ns);
    return s->has_unit ? 0 : s->ended;
}

int rtsp_session_read(struct rtsp_session *s, int64_t now_ns, struct rtsp_unit *ret)
{
    const int rc = rtsp_session_step(s, now_ns);
    if (!s->has_unit)
        return rc < 0 ? rc : -EAGAIN;
    s->has_unit = false;
    *ret = s->unit;
    return 0;
}

enum rtsp_phase rtsp_session_phase(const struct rtsp_session *s)
{
    return s->phase;
}

bool rtsp_session_has_begun(const struct rtsp_session *s)
{
    return s->phase == RTSP_PLAYING || s->media_ns;
}

bool rtsp_session_is_answered(const struct rtsp_session *s)
{
    return s->phase == RTSP_PLAYING && !s->exchange.method;
}

const struct sdp_media *rtsp_session_media(const struct rtsp_session *s)
{
    return s->media.codec != SDP_OTHER ? &s->media : NULL;
}

const uint8_t *rtsp_session_sets(const struct rtsp_session *s, size_t *bytes)
{
    if (s->track)
        return rtsp_track_sets(s->track, bytes);
    *bytes = (size_t)s->media.sets_bytes;
    return s->media.sets;
}

struct rtp_statistics rtsp_session_statistics(const struct rtsp_session *s)
{
    return s->track ? rtsp_track_statistics(s->track) : (struct rtp_statistics){0};
}

uint64_t rtsp_session_overruns(const struct rtsp_session *s)
{
    return rtsp_carriage_overruns(&s->carriage);
}

const char *rtsp_session_transport(const struct rtsp_session *s)
{
    static const char *const names[] = {
        [TRANSPORT_TCP] = "tcp", [TRANSPORT_UDP] = "udp", [TRANSPORT_MULTICAST] = "multicast"};
    return names[s->phase < RTSP_SETTING_UP ? s->transport : s->carriage.transport];
}

void rtsp_session_want_keyframe(struct rtsp_session *s)
{
    s->wants_keyframe = s->media.pli || s->media.fir;
}

void rtsp_session_ping(struct rtsp_session *s)
{
    const bool waits =
        s->exchange.method && s->now_ns < s->exchange.asked_ns + PING_PATIENCE * SECOND_NS;
    if (!s->ended && s->phase == RTSP_PLAYING && !waits && s->keep_alive_ns != INT64_MAX)
        keep_alive(s);
}

int64_t rtsp_session_heard_ns(const struct rtsp_session *s)
{
    return s->heard_ns;
}

const char *rtsp_session_why(const struct rtsp_session *s)
{
    return s->why;
}

void rtsp_session_teardown(struct rtsp_session *s, int64_t now_ns)
{
    s->now_ns = now_ns;
    s->has_unit = false;
    if (s->phase == RTSP_LEAVING)
        s->reconnects = false;
    else if (!s->ended)
        leave(s);
}

void rtsp_session_close(struct rtsp_session *s)
{
    if (!s)
        return;
    if (!s->ended && s->phase != RTSP_LEAVING && s->connection)
        leave(s);
    if (s->carriage.sockets && !s->datagram_came)
        s->memory->tcp_fails = false;
    close_connection(s);
    explicit_bzero(s->url.password, sizeof s->url.password);
    free(s);
}
