#include "daemon/rtsp/session.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/number.h"

static const int64_t SECOND_NS = 1000000000,
                     GOODBYE_NS = 500000000, // how long TEARDOWN's reply may take
    STOPPED_NS = 400000000;                  // without media: the camera stopped sending
enum {
    REDIRECTS_MAX = 5,
    REQUEST_MAX = 48 << 10,
    AUTHORIZATION_MAX = 32 << 10,
    TIMEOUT_MAX = 24 * 3600, // seconds that a session may live without a request
    TIMEOUT_DEFAULT = 60,
    KEEP_ALIVE_MAX = 30, // seconds between two requests
};

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
        s->track->ending = true;
    s->ended = rc;
    return rc;
}

int rtsp_end(struct rtsp_session *s, int rc, const char *format, ...)
{
    va_list arguments;
    char why[sizeof s->why];
    const int n = snprintf(why, sizeof why, "%s ", s->place);
    va_start(arguments, format);
    vsnprintf(why + n, sizeof why - (size_t)n, format, arguments);
    va_end(arguments);
    return end_with(s, rc, why);
}

int rtsp_end_by_error(struct rtsp_session *s, int rc, const char *what)
{
    char why[sizeof s->why];
    snprintf(why, sizeof why, "%s %s: %s", what, s->place, strerror(-rc));
    return end_with(s, rc, why);
}

const char *rtsp_method(const struct rtsp_session *s)
{
    static const char *const methods[] = {"connect", "DESCRIBE", "SETUP", "PLAY", "", "TEARDOWN"};
    return methods[s->phase];
}

// --- requests

// Sends the open request, with the headers in the order of the most common client: some cameras
// accept no other.
static int send_request(struct rtsp_session *s)
{
    char request[REQUEST_MAX], authorization[AUTHORIZATION_MAX] = "", what[32];
    int rc = *s->url.user ? rtsp_auth_sign(&s->auth, s->url.user, s->url.password, s->method,
                                           s->request_url, authorization, sizeof authorization)
                          : 0;
    const bool in_session = s->session_id[0];
    s->is_signed = authorization[0];
    s->asked_ns = s->now_ns;
    const int n =
        snprintf(request, sizeof request,
                 "%s %s RTSP/1.0\r\nCSeq: %u\r\n%s%s%sUser-Agent: "
                 "framed/" FRAMED_VERSION_TEXT "\r\n%s%s%s%s\r\n",
                 s->method, s->request_url, ++s->cseq, s->is_signed ? "Authorization: " : "",
                 authorization, s->is_signed ? "\r\n" : "", in_session ? "Session: " : "",
                 s->session_id, in_session ? "\r\n" : "", s->request_headers);
    if (rc == 0)
        rc = n < REQUEST_MAX ? rtsp_connection_write(s->connection, request, (size_t)n) : -ENOBUFS;
    explicit_bzero(authorization, sizeof authorization);
    explicit_bzero(request, sizeof request); // Basic carries the password
    if (rc == 0)
        return 0;
    snprintf(what, sizeof what, "cannot send %s to", s->method);
    return rtsp_end_by_error(s, rc, what);
}

// Opens a request. `headers` are complete lines.
static int ask(struct rtsp_session *s, const char *method, const char *url, const char *headers)
{
    s->method = method;
    s->repeated = false;
    snprintf(s->request_url, sizeof s->request_url, "%s", url);
    snprintf(s->request_headers, sizeof s->request_headers, "%s", headers);
    return send_request(s);
}

// No longer waits for the open request's reply.
static void abandon_request(struct rtsp_session *s)
{
    if (s->method)
        s->abandoned = s->cseq;
    s->method = NULL;
}

// --- connecting

void rtsp_disconnect(struct rtsp_session *s)
{
    rtsp_carriage_close(&s->carriage);
    rtsp_track_close(s->track);
    rtsp_connection_close(s->connection);
    rtsp_reader_close(&s->reader);
    s->track = NULL;
    s->connection = NULL;
    s->avoids = false;
}

int rtsp_begin(struct rtsp_session *s)
{
    rtsp_disconnect(s);
    s->method = NULL;
    s->session_id[0] = 0;
    s->timeout_s = 0;
    s->cseq = s->abandoned = 0;
    s->is_signed = s->repeated = s->accepted = false;
    // An answer to an old connection's challenge would look like a wrong password.
    s->auth = (struct rtsp_auth){
        .first_only = s->auth.first_only,
        .digest_offered = s->memory->digest_offered,
        .encrypted = s->url.tls,
    };
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
    return rc < 0 ? rtsp_end_by_error(s, rc, "cannot begin to connect to") : 0;
}

int rtsp_connect(struct rtsp_session *s)
{
    char why[256];
    int rc = rtsp_connection_connect(s->connection, s->now_ns, why, sizeof why);
    if (rc == -EAGAIN)
        return rc;
    if (rc == -ECONNREFUSED && rtsp_url_take_other_port(&s->url))
        return rtsp_begin(s);
    if (rc < 0)
        return rtsp_end(
            s, rc, "%s%s", why,
            s->url.port_changed ? " (port 322, which is tried first, refused the connection)" : "");
    s->phase = RTSP_DESCRIBING;
    return ask(s, "DESCRIBE", s->url.text, "Accept: application/sdp\r\n");
}

// Keeps user and password only for the host and port that they were given for.
static int redirect(struct rtsp_session *s, const struct rtsp_message *message)
{
    struct rtsp_url to;
    const char *location = rtsp_message_header(message, "Location", NULL);
    if (!location || rtsp_url_parse(&to, location) < 0)
        return rtsp_end(s, -EPROTO, "sends us elsewhere, but not to a URL of RTSP");
    if (s->redirects++ >= REDIRECTS_MAX)
        return rtsp_end(s, -ELOOP, "is the end of %d redirections: that many are followed",
                        REDIRECTS_MAX);
    if (s->url.tls && !to.tls)
        return rtsp_end(s, -EPROTO, "sends us from rtsps to rtsp, which framed refuses");
    if (!strcasecmp(to.host, s->url.host) && to.port == s->url.port && !*to.user) {
        memcpy(to.user, s->url.user, sizeof to.user);
        memcpy(to.password, s->url.password, sizeof to.password);
    }
    s->url = to;
    return rtsp_begin(s);
}

// --- leaving

int rtsp_finish(struct rtsp_session *s)
{
    if (!s->reconnects)
        return rtsp_end(s, -ESHUTDOWN, "was left");
    s->reconnects = false;
    return rtsp_begin(s);
}

static int ask_teardown(struct rtsp_session *s)
{
    if (!s->session_id[0])
        return rtsp_finish(s);
    return ask(s, "TEARDOWN", *s->aggregate ? s->aggregate : s->url.text, "");
}

int rtsp_leave(struct rtsp_session *s)
{
    uint8_t bye[RTCP_REPORT_MAX];
    const bool was_playing = s->phase == RTSP_PLAYING, connected = s->phase != RTSP_CONNECTING;
    if (s->now_ns - s->media_ns > STOPPED_NS)
        learn_keep_alive(s);
    s->phase = RTSP_LEAVING;
    s->leave_ns = s->now_ns + GOODBYE_NS;
    if (!connected)
        return rtsp_finish(s);
    if (was_playing) {
        rtsp_carriage_send(&s->carriage, s->connection, bye,
                           rtsp_track_write(s->track, RTCP_BYE, s->now_ns, bye));
        abandon_request(s);
    }
    // SETUP's reply has the session's id, and nothing may be sent between PLAY and its reply.
    return s->method ? 0 : ask_teardown(s);
}

int rtsp_fall_back(struct rtsp_session *s)
{
    s->transport = TRANSPORT_TCP;
    s->fell_back = s->reconnects = true;
    return rtsp_leave(s);
}

// --- keep-alive

// Schedules the next request.
static void schedule_keep_alive(struct rtsp_session *s)
{
    s->keep_alive_ns = s->now_ns + bounds_min(s->timeout_ns / 2, KEEP_ALIVE_MAX * SECOND_NS);
}

int rtsp_keep_alive(struct rtsp_session *s)
{
    // EvoStream accepts GET_PARAMETER without listing it, so it comes second at the latest.
    static const char *const methods[2][3] = {{"OPTIONS", "GET_PARAMETER", "SET_PARAMETER"},
                                              {"GET_PARAMETER", "OPTIONS", "SET_PARAMETER"}};
    abandon_request(s);
    if (s->media_ns - s->play_ns > 3 * s->timeout_ns)
        s->memory->keep_alive_proven = true;
    s->keep_alive_sent = true;
    schedule_keep_alive(s);
    return ask(s, methods[s->get_listed][s->memory->keep_alive % 3], s->base, "");
}

// --- answers

static int end_refused(struct rtsp_session *s, bool has_other)
{
    s->memory->first_challenge = has_other && !s->memory->first_challenge;
    if (!*s->url.user)
        return rtsp_end(s, -EACCES, "wants a user name and a password%s",
                        s->redirects ? ", and those of the URL stay with its host and port" : "");
    if (s->auth.basic_refused && !s->is_signed)
        return rtsp_end(s, -EPERM,
                        "offers Basic alone after Digest: framed sends no password in clear to it");
    return rtsp_end(s, -EACCES, "refused the user name or password");
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
    return rtsp_end(s, rc, "answered %s with %d %.60s%s", rtsp_method(s), reply->status,
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
        return rtsp_end_by_error(s, rc, "cannot set up the video of");
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
    const int n = sdp_list(sdp, true, chosen, others, sizeof others);
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
        return rtsp_end(s, -EPROTO, "describes its stream in no way that framed can read");
    if (strstr(sdp->control, "://"))
        memcpy(s->base, s->aggregate, sizeof s->base);
    const int chosen = sdp_choose_video(sdp, s->memory->payload_type);
    if (chosen < 0) {
        rc = sdp_list(sdp, true, -1, offered, sizeof offered) > 0 ? -EMEDIUMTYPE : -EINVAL;
        sdp_list(sdp, false, -1, offered, sizeof offered);
        return rtsp_end(s, rc, "offers no H.264, H.265 or JPEG video, but: %s", offered);
    }
    if (s->media.codec != SDP_OTHER && sdp->media[chosen].codec != s->media.codec)
        return rtsp_end(s, -EINVAL, "offers another codec than a moment ago");
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
                 : rtsp_end_by_error(s, -ENOMEM, "cannot read the description of");
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
        return rtsp_fall_back(s);
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
        return rtsp_end_by_error(s, rc, "cannot receive the video of");
    if (s->transport == TRANSPORT_TCP)
        s->reader.framing = (struct rtsp_framing){s->carriage.channels[0], s->carriage.channels[1],
                                                  s->media.payload_type};
    rtsp_carriage_punch(&s->carriage, s->media.payload_type, s->track->reports.ssrc);
    s->phase = RTSP_STARTING;
    return ask(s, "PLAY", s->aggregate, "Range: npt=0.000-\r\n");
}

int rtsp_start(struct rtsp_session *s)
{
    abandon_request(s);
    s->phase = RTSP_PLAYING;
    s->play_ns = s->now_ns;
    s->timeout_ns = (s->timeout_s ? s->timeout_s : TIMEOUT_DEFAULT) * SECOND_NS;
    s->keep_alive_sent = false;
    schedule_keep_alive(s);
    return ask(s, "OPTIONS", s->base, ""); // its reply lists the possible keep-alives
}

// Takes the reply to a request of this method.
static int take_answer(struct rtsp_session *s, const char *method, const struct rtsp_message *reply)
{
    const char *listed;
    const int status = reply->status;
    if (s->phase == RTSP_LEAVING)
        return strcmp(method, "TEARDOWN") ? ask_teardown(s) : rtsp_finish(s);
    if (s->timeout_s)
        s->memory->session_s = s->timeout_s;
    if (s->phase != RTSP_PLAYING &&
        (status == 301 || status == 302 || status == 303 || status == 305))
        return redirect(s, reply);
    switch (s->phase) {
    case RTSP_DESCRIBING:
        return take_description(s, reply);
    case RTSP_SETTING_UP:
        return take_setup(s, reply);
    case RTSP_STARTING:
        return status == 200 ? rtsp_start(s) : end_by_status(s, reply);
    default: // OPTIONS or a keep-alive: any status is fine while media flow
        listed = rtsp_message_header(reply, "Public", NULL);
        s->get_listed |= listed && strcasestr(listed, "GET_PARAMETER");
        return 0;
    }
}

// "id ; timeout = 60". The first id stays; of several timeouts the smallest counts.
static void note_session(struct rtsp_session *s, const char *value)
{
    const char *timeout = strcasestr(value, "timeout");
    size_t n = strcspn(value, ";");
    while (n > 0 && isspace((unsigned char)value[n - 1]))
        n--;
    if (!s->session_id[0] && n > 0 && n < sizeof s->session_id) {
        memcpy(s->session_id, value, n);
        s->session_id[n] = 0;
    }
    if (!timeout)
        return;
    timeout += strlen("timeout");
    const long seconds = strtol(timeout + strspn(timeout, " =\t"), NULL, 10);
    if (seconds > 0 && seconds <= TIMEOUT_MAX && (!s->timeout_s || seconds < s->timeout_s))
        s->timeout_s = (int)seconds;
}

// Returns true if the first challenge differs in scheme from the best one: only one was tried.
static bool has_other_challenge(const struct rtsp_auth *tried, const struct rtsp_message *reply)
{
    struct rtsp_auth other = {.first_only = !tried->first_only,
                              .encrypted = tried->encrypted,
                              .digest_offered = tried->digest_offered};
    return rtsp_auth_challenge(&other, reply) == 0 && other.scheme != tried->scheme;
}

// Allows one signed try per connection, so that no camera locks its account. Signs again only if
// the camera has accepted the password before, or reports that only the nonce was old.
static int take_challenge(struct rtsp_session *s, const struct rtsp_message *reply)
{
    const bool again = s->is_signed;
    const int rc = rtsp_auth_challenge(&s->auth, reply);
    const bool stale = again && (s->auth.stale || (s->accepted && s->auth.new_nonce));
    s->memory->digest_offered |= s->auth.digest_offered;
    if (s->phase == RTSP_LEAVING && !*s->session_id)
        return rtsp_finish(s); // no session to end, so no password is tried
    if (rc == 0 && *s->url.user && !s->repeated && (!again || stale)) {
        s->repeated = again;
        return send_request(s);
    }
    s->method = NULL;
    if (s->phase == RTSP_LEAVING)
        return rtsp_finish(s);
    if (s->phase != RTSP_PLAYING)
        return end_refused(s, again && has_other_challenge(&s->auth, reply));
    s->keep_alive_ns = INT64_MAX; // more refusals might lock the account; media still flow
    return 0;
}

static int take_reply(struct rtsp_session *s, const struct rtsp_message *reply)
{
    // Cameras send wrong CSeqs, so a CSeq only identifies the late reply to an abandoned request.
    const char *cseq = rtsp_message_header(reply, "CSeq", NULL), *method = s->method;
    const char *session = rtsp_message_header(reply, "Session", NULL);
    const bool late = cseq && s->abandoned && strtoul(cseq, NULL, 10) == s->abandoned;
    const bool challenged = rtsp_message_header(reply, "WWW-Authenticate", NULL);
    if (late || !method || reply->status < 200) // 100 Continue
        return 0;
    if (reply->status == 401 || (reply->status == 404 && challenged))
        return take_challenge(s, reply);
    if (session && reply->status < 300 && (!strcmp(method, "SETUP") || s->session_id[0]))
        note_session(s, session);
    s->accepted |= s->is_signed;
    s->method = NULL;
    return take_answer(s, method, reply);
}

static int take_request(struct rtsp_session *s, const struct rtsp_message *request)
{
    char reply[128];
    const char *cseq = rtsp_message_header(request, "CSeq", NULL), *method = request->method;
    if (!strcmp(method, "REDIRECT") && s->phase < RTSP_PLAYING)
        return redirect(s, request);
    if (!strcmp(method, "REDIRECT") && s->phase == RTSP_PLAYING)
        return rtsp_end(s, -ENODATA, "sends us elsewhere");
    const bool known = !strcmp(method, "OPTIONS") || !strcmp(method, "GET_PARAMETER");
    const int n = snprintf(reply, sizeof reply, "RTSP/1.0 %s\r\nCSeq: %.20s\r\n\r\n",
                           known ? "200 OK" : "501 Not Implemented", cseq ? cseq : "0");
    int rc = rtsp_connection_write(s->connection, reply, (size_t)n);
    return rc < 0 && rc != -ENOBUFS ? rtsp_end_by_error(s, rc, "cannot answer") : 0;
}

int rtsp_take_message(struct rtsp_session *s, const struct rtsp_message *message)
{
    return message->status ? take_reply(s, message) : take_request(s, message);
}
