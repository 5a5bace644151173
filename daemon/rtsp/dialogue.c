#include "daemon/rtsp/session.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
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
    if (s->play_ns && !s->memory->keep_alive_proven && s->keep_alive_sent &&
        lived_ns > s->timeout_ns - 2 * SECOND_NS &&
        lived_ns < s->timeout_ns * 3 / 2 + 5 * SECOND_NS)
        s->memory->keep_alive = (s->memory->keep_alive + 1) % 3;
}

// Ends the session, unless it has ended or is being left, and returns `rc`.
static int end_with(struct rtsp_session *s, int rc, const char *why)
{
    if (s->ended || s->leaving)
        return rc;
    log_scrub(s->why, sizeof s->why, why); // may contain the camera's own words
    learn_keep_alive(s);
    s->memory->tcp_fails |= s->fell_back && !s->media_ns;
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

int rtsp_end_late(struct rtsp_session *s)
{
    const bool connected = s->connection.fd >= 0;
    return rtsp_end(s, -ETIMEDOUT, "did not answer %s%swithin %g s", connected ? s->method : "",
                    connected ? " " : "", (double)s->config->connect_timeout.ns / 1e9);
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
        rc = n < REQUEST_MAX ? rtsp_connection_write(&s->connection, request, (size_t)n) : -ENOBUFS;
    explicit_bzero(authorization, sizeof authorization);
    explicit_bzero(request, sizeof request); // Basic carries the password
    if (rc == 0)
        return 0;
    snprintf(what, sizeof what, "cannot send %s to", s->method);
    return rtsp_end_by_error(s, rc, what);
}

// Opens a request. `headers` are complete lines.
static int begin_request(struct rtsp_session *s, const char *method, const char *url,
                         const char *headers)
{
    s->method = method;
    s->open = true;
    s->repeated = false;
    snprintf(s->request_url, sizeof s->request_url, "%s", url);
    snprintf(s->request_headers, sizeof s->request_headers, "%s", headers);
    return send_request(s);
}

// No longer waits for the open request's reply.
static void abandon_request(struct rtsp_session *s)
{
    if (s->open)
        s->abandoned = s->cseq;
    s->open = false;
}

// Takes the next item of input, or waits for it. Returns -EAGAIN if there was none by `until_ns`: a
// wait may have lasted longer, so that only a read shows it.
static int next_input(struct rtsp_session *s, int64_t until_ns)
{
    int rc = rtsp_take_input(s);
    if (rc == -EAGAIN && s->now_ns < until_ns) {
        rtsp_wait_for_input(s, until_ns);
        rc = 0;
    }
    s->now_ns = monotonic_ns();
    return rc;
}

// Sends a request and waits for s->reply, while it takes all other input.
static int ask(struct rtsp_session *s, const char *method, const char *url, const char *headers)
{
    int rc = begin_request(s, method, url, headers);
    while (rc == 0 && s->open) {
        if (atomic_load(s->stop))
            rc = -ECANCELED;
        else if (s->now_ns >= s->until_ns)
            rc = rtsp_end_late(s);
        else
            rc = next_input(s, bounds_min(s->until_ns, s->heard_ns + s->answer_ns));
    }
    return rc;
}

// --- connecting

static void disconnect(struct rtsp_session *s)
{
    rtsp_carriage_close(&s->carriage);
    rtsp_track_close(s->track);
    rtsp_connection_close(&s->connection);
    s->track = NULL;
}

// Forgets the former connection.
static void begin(struct rtsp_session *s)
{
    disconnect(s);
    rtsp_reader_reset(&s->reader);
    s->leaving = s->open = s->avoids = s->merged = false;
    s->session_id[0] = 0;
    s->timeout_s = 0;
    s->play_ns = 0;
    s->cseq = s->abandoned = 0;
    s->is_signed = s->repeated = s->accepted = false;
    // An answer to an old connection's challenge would look like a wrong password.
    s->auth = (struct rtsp_auth){
        .first_only = s->auth.first_only,
        .digest_offered = s->memory->digest_offered,
        .encrypted = s->url.tls,
    };
    snprintf(s->place, sizeof s->place, strchr(s->url.host, ':') ? "[%s]:%d" : "%s:%d", s->url.host,
             s->url.port);
    if (s->url.tls)
        s->transport = TRANSPORT_TCP; // over UDP media would go unencrypted
    s->carriage.transport = s->transport;
}

static int connect_to_server(struct rtsp_session *s)
{
    char why[256];
    begin(s);
    int rc = rtsp_connection_open(&s->connection,
                                  &(struct rtsp_server){.host = s->url.host,
                                                        .port = s->url.port,
                                                        .tls = s->url.tls ? &s->config->tls : NULL,
                                                        .address = &s->memory->address,
                                                        .stop = s->stop,
                                                        .until_ns = s->until_ns,
                                                        .answer_ns = s->answer_ns},
                                  why, sizeof why);
    s->now_ns = s->heard_ns = monotonic_ns();
    if (rc == 0 || rc == -ECANCELED)
        return rc;
    if (rc == -EAGAIN)
        return s->now_ns >= s->until_ns ? rtsp_end_late(s) : rc;
    if (rc == -ECONNREFUSED && rtsp_url_take_other_port(&s->url))
        return -ERESTART;
    return rtsp_end(
        s, rc, "%s%s", why,
        s->url.port_changed ? " (port 322, which is tried first, refused the connection)" : "");
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
    return -ERESTART;
}

// --- leaving

static void await_goodbye(struct rtsp_session *s, int64_t end_ns)
{
    while (s->open && s->now_ns < end_ns && next_input(s, end_ns) == 0)
        ;
}

// Sends BYE and TEARDOWN, and waits for the reply.
static void leave(struct rtsp_session *s, int64_t limit_ns)
{
    uint8_t bye[RTCP_REPORT_MAX];
    s->now_ns = monotonic_ns();
    const int64_t end_ns = s->now_ns + bounds_min(limit_ns, GOODBYE_NS);
    if (s->now_ns - s->media_ns > STOPPED_NS)
        learn_keep_alive(s);
    s->leaving = true;
    if (s->play_ns) {
        rtsp_carriage_send(&s->carriage, &s->connection, bye,
                           rtsp_track_write(s->track, RTCP_BYE, s->now_ns, bye));
        abandon_request(s);
    }
    // SETUP's reply has the session's id, and nothing may be sent between PLAY and its reply.
    await_goodbye(s, end_ns);
    if (s->open || !s->session_id[0])
        return;
    if (begin_request(s, "TEARDOWN", *s->aggregate ? s->aggregate : s->url.text, "") == 0)
        await_goodbye(s, end_ns);
}

int rtsp_fall_back(struct rtsp_session *s)
{
    leave(s, GOODBYE_NS);
    s->transport = TRANSPORT_TCP;
    s->fell_back = true;
    return -ERESTART;
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
    return begin_request(s, methods[s->get_listed][s->memory->keep_alive % 3], s->base, "");
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

static int end_by_status(struct rtsp_session *s)
{
    const struct rtsp_message *reply = &s->reply;
    int rc = -EPROTO;
    if (reply->status == 403)
        rc = -EPERM; // not about the password: only 401 is
    else if (reply->status == 404)
        rc = -ENOENT;
    else if (reply->status == 453 || reply->status == 503)
        rc = -EUSERS;
    return rtsp_end(s, rc, "answered %s with %d %.60s%s", s->method, reply->status,
                    reply->reason ? reply->reason : "",
                    rc == -EPERM ? ": this user or this box may not see the stream" : "");
}

// Asks for the transport and the form of URL in `s`.
static int ask_setup(struct rtsp_session *s)
{
    char headers[256], url[RTSP_URL_MAX];
    int rc = rtsp_carriage_ask(&s->carriage, s->transport, &s->connection, headers, sizeof headers);
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

static int read_description(struct rtsp_session *s, struct sdp *sdp)
{
    const struct rtsp_message *reply = &s->reply;
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
    return 0;
}

static int describe(struct rtsp_session *s)
{
    int rc = ask(s, "DESCRIBE", s->url.text, "Accept: application/sdp\r\n");
    if (rc < 0)
        return rc;
    if (s->reply.status != 200)
        return end_by_status(s);
    struct sdp *sdp = malloc(sizeof *sdp);
    rc = sdp ? read_description(s, sdp)
             : rtsp_end_by_error(s, -ENOMEM, "cannot read the description of");
    free(sdp);
    return rc;
}

// Returns true if `status` may mean a wrong URL and the track's URL has another form.
static bool may_merge(const struct rtsp_session *s, int status)
{
    char merged[RTSP_URL_MAX];
    const bool wrong =
        status == 400 || status == 404 || status == 451 || status == 455 || status == 503;
    return wrong && !s->merged && rtsp_url_of_track(merged, s->base, s->media.control, true) == 0 &&
           strcmp(s->request_url, merged) != 0;
}

// Returns true if SETUP may succeed in another form, which it chooses.
static bool may_ask_again(struct rtsp_session *s, int status)
{
    if (status == 461 && s->transport != TRANSPORT_TCP) {
        s->transport = TRANSPORT_TCP;
        return s->fell_back = true;
    }
    return may_merge(s, status) && (s->merged = true);
}

static int set_up(struct rtsp_session *s)
{
    int rc;
    do
        rc = ask_setup(s);
    while (rc == 0 && may_ask_again(s, s->reply.status));
    if (rc < 0)
        return rc;
    if (s->reply.status != 200)
        return end_by_status(s);
    rc = rtsp_carriage_answer(&s->carriage, rtsp_message_header(&s->reply, "Transport", NULL),
                              &s->media);
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
    return begin_request(s, "PLAY", s->aggregate, "Range: npt=0.000-\r\n");
}

int rtsp_session_play(struct rtsp_session *s, int64_t until_ns, int64_t answer_ns)
{
    int rc;
    s->tried_ns = monotonic_ns();
    s->until_ns = until_ns;
    s->answer_ns = answer_ns;
    do {
        rc = connect_to_server(s);
        if (rc == 0)
            rc = describe(s);
        if (rc == 0)
            rc = set_up(s);
    } while (rc == -ERESTART);
    return rc;
}

// --- what arrives

int rtsp_start(struct rtsp_session *s)
{
    abandon_request(s);
    s->play_ns = s->now_ns;
    s->timeout_ns = (s->timeout_s ? s->timeout_s : TIMEOUT_DEFAULT) * SECOND_NS;
    s->keep_alive_sent = false;
    schedule_keep_alive(s);
    return begin_request(s, "OPTIONS", s->base, ""); // its reply lists the possible keep-alives
}

// Takes the reply to the last request.
static int take_answer(struct rtsp_session *s, const struct rtsp_message *reply)
{
    const char *listed = rtsp_message_header(reply, "Public", NULL);
    const int status = reply->status;
    s->open = false;
    s->reply = *reply;
    if (s->leaving)
        return 0;
    if (s->timeout_s)
        s->memory->session_s = s->timeout_s;
    if (!s->play_ns && (status == 301 || status == 302 || status == 303 || status == 305))
        return redirect(s, reply);
    if (!strcmp(s->method, "PLAY"))
        return status == 200 ? rtsp_start(s) : end_by_status(s);
    // OPTIONS or a keep-alive: any status is fine while media flow
    s->get_listed |= listed && strcasestr(listed, "GET_PARAMETER");
    return 0;
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
    const bool useless = s->leaving && !*s->session_id; // no session to end: no password is tried
    if (rc == 0 && *s->url.user && !useless && !s->repeated && (!again || stale)) {
        s->repeated = again;
        return send_request(s);
    }
    s->open = false;
    if (s->leaving)
        return 0;
    if (!s->play_ns)
        return end_refused(s, again && has_other_challenge(&s->auth, reply));
    s->keep_alive_ns = INT64_MAX; // more refusals might lock the account; media still flow
    return 0;
}

static int take_reply(struct rtsp_session *s, const struct rtsp_message *reply)
{
    // Cameras send wrong CSeqs, so a CSeq only identifies the late reply to an abandoned request.
    const char *cseq = rtsp_message_header(reply, "CSeq", NULL);
    const char *session = rtsp_message_header(reply, "Session", NULL);
    const bool late = cseq && s->abandoned && strtoul(cseq, NULL, 10) == s->abandoned;
    const bool challenged = rtsp_message_header(reply, "WWW-Authenticate", NULL);
    if (late || !s->open || reply->status < 200) // 100 Continue
        return 0;
    if (reply->status == 401 || (reply->status == 404 && challenged))
        return take_challenge(s, reply);
    if (session && reply->status < 300 && (!strcmp(s->method, "SETUP") || s->session_id[0]))
        note_session(s, session);
    s->accepted |= s->is_signed;
    return take_answer(s, reply);
}

static int take_request(struct rtsp_session *s, const struct rtsp_message *request)
{
    char reply[128];
    const char *cseq = rtsp_message_header(request, "CSeq", NULL), *method = request->method;
    if (!strcmp(method, "REDIRECT") && !s->leaving)
        return s->play_ns ? rtsp_end(s, -ENODATA, "sends us elsewhere") : redirect(s, request);
    const bool known = !strcmp(method, "OPTIONS") || !strcmp(method, "GET_PARAMETER");
    const int n = snprintf(reply, sizeof reply, "RTSP/1.0 %s\r\nCSeq: %.20s\r\n\r\n",
                           known ? "200 OK" : "501 Not Implemented", cseq ? cseq : "0");
    int rc = rtsp_connection_write(&s->connection, reply, (size_t)n);
    return rc < 0 && rc != -ENOBUFS ? rtsp_end_by_error(s, rc, "cannot answer") : 0;
}

int rtsp_take_message(struct rtsp_session *s, const struct rtsp_message *message)
{
    return message->status ? take_reply(s, message) : take_request(s, message);
}

// --- opening and closing

int rtsp_session_open(struct rtsp_session **ret, const struct camera_config *config,
                      struct rtsp_memory *memory, const _Atomic bool *stop)
{
    struct rtsp_session *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->config = config;
    s->memory = memory;
    s->stop = stop;
    s->transport = memory->udp_fails ? TRANSPORT_TCP : config->transport;
    s->auth.first_only = memory->first_challenge;
    s->connection.fd = s->carriage.fd[0] = s->carriage.fd[1] = -1;
    int rc = rtsp_url_parse(&s->url, config->url);
    if (rc < 0)
        rtsp_session_close(s, 0);
    else
        *ret = s;
    return rc;
}

void rtsp_session_close(struct rtsp_session *s, int64_t limit_ns)
{
    if (!s)
        return;
    if (s->connection.fd >= 0 && !s->ended)
        leave(s, limit_ns);
    if (s->track && s->carriage.transport != TRANSPORT_TCP && !s->datagram_came)
        s->memory->tcp_fails = false;
    disconnect(s);
    explicit_bzero(s->url.password, sizeof s->url.password);
    free(s);
}
