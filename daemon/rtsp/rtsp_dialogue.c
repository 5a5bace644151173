#include "daemon/rtsp/rtsp_dialogue.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/number.h"

// --- keep-alive

static const int64_t SECOND_NS = 1000000000;
enum {
    TIMEOUT_DEFAULT = 60, // seconds
    PERIOD_MAX = 30,      // seconds between two requests
};

// Schedules the next request.
static void rtsp_keep_alive_sent(struct rtsp_keep_alive *k, int64_t now_ns)
{
    const int64_t half = k->timeout_ns / 2, most = PERIOD_MAX * SECOND_NS;
    k->sent = true;
    k->due_ns = now_ns + (half < most ? half : most);
}

// `timeout_s` 0: the camera named none.
static void rtsp_keep_alive_start(struct rtsp_keep_alive *k, int timeout_s, int64_t now_ns)
{
    *k = (struct rtsp_keep_alive){
        .timeout_ns = (timeout_s ? timeout_s : TIMEOUT_DEFAULT) * SECOND_NS,
        .play_ns = now_ns,
        .get_listed = k->get_listed,
    };
    rtsp_keep_alive_sent(k, now_ns);
    k->sent = false;
}

// Returns the method to use after `failed` others did not keep sessions of this camera alive.
static const char *rtsp_keep_alive_method(const struct rtsp_keep_alive *k, int failed)
{
    // EvoStream accepts GET_PARAMETER without listing it, so it comes second at the latest.
    static const char *const listed[] = {"GET_PARAMETER", "OPTIONS", "SET_PARAMETER"};
    static const char *const unlisted[] = {"OPTIONS", "GET_PARAMETER", "SET_PARAMETER"};
    return (k->get_listed ? listed : unlisted)[(unsigned)failed % 3];
}

// Returns true if media flowed until `media_ns`, longer than a session lives without a keep-alive.
static bool rtsp_keep_alive_works(const struct rtsp_keep_alive *k, int64_t media_ns)
{
    return k->play_ns && media_ns - k->play_ns > 3 * k->timeout_ns;
}

// Returns true if media stopped after `media_ns` as if the camera had ignored its keep-alive.
// Servers check their sessions now and then, and count from PLAY or from a later request.
static bool rtsp_keep_alive_failed(const struct rtsp_keep_alive *k, int64_t media_ns)
{
    const int64_t lived = media_ns - k->play_ns;
    return k->play_ns && k->sent && lived > k->timeout_ns - 2 * SECOND_NS &&
           lived < k->timeout_ns * 3 / 2 + 5 * SECOND_NS;
}

// --- the dialogue

static const int64_t GOODBYE_NS = 500000000; // how long TEARDOWN's reply may take
static const int64_t STOPPED_NS = 400000000; // without media: the camera stopped sending
enum { REDIRECTS_MAX = 5, VIDEO_NAME_MAX = 64 };

// --- the end

// Chooses the next keep-alive method if media stopped because the camera ignored this one.
static void learn_keep_alive(struct rtsp_dialogue *d)
{
    struct rtsp_memory *memory = d->memory;
    if (d->phase == RTSP_PLAYING && !memory->keep_alive_proven &&
        rtsp_keep_alive_failed(&d->keep_alive, d->media_ns))
        memory->keep_alive = (memory->keep_alive + 1) % 3;
}

int rtsp_dialogue_end(struct rtsp_dialogue *d, int rc, const char *format, ...)
{
    va_list arguments;
    char text[sizeof d->why];
    if (d->ended)
        return rc;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log_scrub(d->why, sizeof d->why, text); // may contain the camera's own words
    learn_keep_alive(d);
    d->memory->tcp_fails |= d->fell_back && !d->media_ns && rc != -ESHUTDOWN;
    if (d->track)
        rtsp_track_end(d->track);
    d->ended = rc;
    return rc;
}

const char *rtsp_dialogue_method(const struct rtsp_dialogue *d)
{
    static const char *const methods[] = {"connect", "DESCRIBE", "SETUP", "PLAY", "", "TEARDOWN"};
    return methods[d->phase];
}

// --- connecting

void rtsp_dialogue_close(struct rtsp_dialogue *d)
{
    rtsp_carriage_close(&d->carriage);
    rtsp_track_close(d->track);
    rtsp_connection_close(d->connection);
    rtsp_reader_close(&d->reader);
    d->track = NULL;
    d->connection = NULL;
    d->reader = (struct rtsp_reader){0};
    d->avoids = false;
}

int rtsp_dialogue_begin(struct rtsp_dialogue *d)
{
    rtsp_dialogue_close(d);
    rtsp_exchange_reset(&d->exchange);
    d->exchange.auth.encrypted = d->url.tls;
    d->exchange.auth.digest_offered |= d->memory->digest_offered;
    d->phase = RTSP_CONNECTING;
    d->merged = false;
    const char *colons = strchr(d->url.host, ':');
    snprintf(d->place, sizeof d->place, colons ? "[%s]:%d" : "%s:%d", d->url.host, d->url.port);
    if (d->url.tls)
        d->transport = TRANSPORT_TCP; // over UDP media would go unencrypted
    int rc = rtsp_reader_open(&d->reader);
    if (rc == 0)
        rc = rtsp_connection_open(&d->connection, d->url.host, d->url.port,
                                  d->url.tls ? &d->config->tls : NULL, d->now_ns);
    if (rc < 0)
        return rtsp_dialogue_end(d, rc, "cannot begin to connect to %s: %s", d->place,
                                 strerror(-rc));
    return 0;
}

static int send_request(struct rtsp_dialogue *d, char *request, int bytes)
{
    int rc = bytes < 0 ? bytes : rtsp_connection_write(d->connection, request, (size_t)bytes);
    explicit_bzero(request, RTSP_REQUEST_MAX); // Basic carries the password
    if (rc < 0)
        return rtsp_dialogue_end(d, rc, "cannot send %s to %s: %s", d->exchange.method, d->place,
                                 strerror(-rc));
    return 0;
}

static int ask(struct rtsp_dialogue *d, const char *method, const char *url, const char *headers)
{
    char request[RTSP_REQUEST_MAX];
    return send_request(d, request,
                        rtsp_exchange_ask(&d->exchange, method, url, headers, d->now_ns, request));
}

int rtsp_dialogue_connect(struct rtsp_dialogue *d)
{
    char why[256];
    int rc = rtsp_connection_connect(d->connection, d->now_ns, why, sizeof why);
    if (rc == -EAGAIN)
        return rc;
    if (rc == -ECONNREFUSED && rtsp_url_take_other_port(&d->url))
        return rtsp_dialogue_begin(d);
    if (rc < 0)
        return rtsp_dialogue_end(
            d, rc, "%s %s%s", d->place, why,
            d->url.port_changed ? " (port 322, which is tried first, refused the connection)" : "");
    d->phase = RTSP_DESCRIBING;
    return ask(d, "DESCRIBE", d->url.text, "Accept: application/sdp\r\n");
}

// Keeps user and password only for the host and port that they were given for.
static int redirect(struct rtsp_dialogue *d, const struct rtsp_message *message)
{
    struct rtsp_url to;
    const char *location = rtsp_message_header(message, "Location", NULL);
    if (!location || rtsp_url_parse(&to, location) < 0)
        return rtsp_dialogue_end(d, -EPROTO, "%s sends us elsewhere, but not to a URL of RTSP",
                                 d->place);
    if (d->redirects++ >= REDIRECTS_MAX)
        return rtsp_dialogue_end(d, -ELOOP,
                                 "%s is the end of %d redirections: that many are followed",
                                 d->place, REDIRECTS_MAX);
    if (d->url.tls && !to.tls)
        return rtsp_dialogue_end(d, -EPROTO, "%s sends us from rtsps to rtsp, which framed refuses",
                                 d->place);
    if (!strcasecmp(to.host, d->url.host) && to.port == d->url.port && !*to.user) {
        memcpy(to.user, d->url.user, sizeof to.user);
        memcpy(to.password, d->url.password, sizeof to.password);
    }
    d->url = to;
    return rtsp_dialogue_begin(d);
}

// --- leaving

int rtsp_dialogue_finish(struct rtsp_dialogue *d)
{
    if (!d->reconnects)
        return rtsp_dialogue_end(d, -ESHUTDOWN, "stopped");
    d->reconnects = false;
    return rtsp_dialogue_begin(d);
}

static int ask_teardown(struct rtsp_dialogue *d)
{
    if (!d->exchange.session[0])
        return rtsp_dialogue_finish(d);
    return ask(d, "TEARDOWN", *d->aggregate ? d->aggregate : d->url.text, "");
}

int rtsp_dialogue_leave(struct rtsp_dialogue *d)
{
    uint8_t bye[RTCP_REPORT_MAX];
    const bool was_playing = d->phase == RTSP_PLAYING, connected = d->phase != RTSP_CONNECTING;
    if (d->now_ns - d->media_ns > STOPPED_NS)
        learn_keep_alive(d);
    d->phase = RTSP_LEAVING;
    d->leave_ns = d->now_ns + GOODBYE_NS;
    if (!connected)
        return rtsp_dialogue_finish(d);
    if (was_playing) {
        rtsp_carriage_send(&d->carriage, d->connection, bye,
                           rtsp_track_bye(d->track, d->now_ns, bye));
        rtsp_exchange_abandon(&d->exchange);
    }
    // SETUP's reply has the session's id, and nothing may be sent between PLAY and its reply.
    return d->exchange.method ? 0 : ask_teardown(d);
}

int rtsp_dialogue_fall_back(struct rtsp_dialogue *d)
{
    d->transport = TRANSPORT_TCP;
    d->fell_back = d->reconnects = true;
    return rtsp_dialogue_leave(d);
}

// --- DESCRIBE, SETUP, PLAY

static int end_refused(struct rtsp_dialogue *d)
{
    struct rtsp_memory *memory = d->memory;
    if (d->exchange.other_challenge)
        memory->first_challenge = !memory->first_challenge;
    else
        memory->first_challenge = false;
    if (!*d->url.user)
        return rtsp_dialogue_end(d, -EACCES, "%s wants a user name and a password%s", d->place,
                                 d->redirects ? ", and those of the URL stay with its host and port"
                                              : "");
    if (d->exchange.auth.basic_refused && !d->exchange.is_signed)
        return rtsp_dialogue_end(d, -EPERM,
                                 "%s offers Basic alone after Digest: framed sends no password in "
                                 "clear to it",
                                 d->place);
    return rtsp_dialogue_end(d, -EACCES, "%s refused the user name or password", d->place);
}

static int end_by_status(struct rtsp_dialogue *d, const struct rtsp_message *reply)
{
    int rc = -EPROTO;
    if (reply->status == 403)
        rc = -EPERM; // not about the password: only 401 is
    else if (reply->status == 404)
        rc = -ENOENT;
    else if (reply->status == 453 || reply->status == 503)
        rc = -EUSERS;
    return rtsp_dialogue_end(d, rc, "%s answered %s with %d %.60s%s", d->place,
                             rtsp_dialogue_method(d), reply->status,
                             reply->reason ? reply->reason : "",
                             rc == -EPERM ? ": this user or this box may not see the stream" : "");
}

// "H264 1920x1080"
static void name_video(char ret[VIDEO_NAME_MAX], const struct sdp_media *media)
{
    char size[32] = "";
    if (media->width)
        snprintf(size, sizeof size, " %dx%d", media->width, media->height);
    if (*media->encoding)
        snprintf(ret, VIDEO_NAME_MAX, "%s%s", media->encoding, size);
    else
        snprintf(ret, VIDEO_NAME_MAX, "payload type %d%s", media->payload_type, size);
}

static bool has_video(const struct sdp *sdp)
{
    bool has = false;
    for (int i = 0; i < sdp->n_media; i++)
        has |= sdp->media[i].video;
    return has;
}

static int end_without_video(struct rtsp_dialogue *d, const struct sdp *sdp)
{
    char offered[256] = "", name[VIDEO_NAME_MAX];
    size_t n = 0;
    for (int i = 0; i < sdp->n_media && n < sizeof offered - 2 * VIDEO_NAME_MAX; i++) {
        name_video(name, &sdp->media[i]);
        n += (size_t)snprintf(offered + n, sizeof offered - n, "%s%s %s", i ? ", " : "",
                              sdp->media[i].kind, name);
    }
    return rtsp_dialogue_end(d, has_video(sdp) ? -EMEDIUMTYPE : -EINVAL,
                             "%s offers no H.264, H.265 or JPEG video, but: %s", d->place, offered);
}

static void log_choice(const struct rtsp_dialogue *d, const struct sdp *sdp, int chosen)
{
    char name[VIDEO_NAME_MAX], others[SDP_MEDIA_MAX * (VIDEO_NAME_MAX + 2)] = "";
    size_t n = 0;
    int tracks = 1;
    for (int i = 0; i < sdp->n_media; i++) {
        if (!sdp->media[i].video || i == chosen)
            continue;
        name_video(name, &sdp->media[i]);
        n += (size_t)snprintf(others + n, sizeof others - n, "%s%s", n ? ", " : "", name);
        tracks++;
    }
    name_video(name, &sdp->media[chosen]);
    if (tracks > 1)
        log_event(LOG_LEVEL_INFO, "%s offers %d video tracks: framed takes %s and passes over %s",
                  d->place, tracks, name, others);
}

// Drops the learnt picture ends if the stream differs from the last connection's, and returns true
// then.
static bool recall_verdict(struct rtsp_dialogue *d)
{
    const struct sdp_media *m = &d->media;
    const int facts[] = {m->codec, m->payload_type, m->width, m->height};
    uint64_t hash = hash_bytes(HASH_BEGIN, facts, sizeof facts);
    hash = hash_bytes(hash, m->sets, (size_t)m->sets_bytes);
    if (hash == d->memory->sdp_hash)
        return false;
    d->memory->verdict = (struct picture_end_verdict){0};
    d->memory->sdp_hash = hash;
    return true;
}

static int ask_setup(struct rtsp_dialogue *d)
{
    char headers[256], url[RTSP_URL_MAX];
    rtsp_carriage_close(&d->carriage);
    d->phase = RTSP_SETTING_UP;
    int rc = rtsp_carriage_ask(&d->carriage, d->transport, d->connection, headers, sizeof headers);
    if (rc == 0)
        rc = rtsp_url_of_track(url, d->base, d->media.control, d->merged);
    if (rc < 0)
        return rtsp_dialogue_end(d, rc, "cannot set up the video of %s: %s", d->place,
                                 strerror(-rc));
    if (d->dynamic_rate)
        strcat(headers, "x-Dynamic-Rate: 0\r\n");
    return ask(d, "SETUP", url, headers);
}

static void note_choice(struct rtsp_dialogue *d, const struct sdp *sdp, int chosen)
{
    d->media = sdp->media[chosen];
    d->has_media = true;
    d->other_video = false;
    memset(d->other_formats, 0, sizeof d->other_formats);
    memset(d->other_codecs, 0, sizeof d->other_codecs);
    for (int i = 0; i < sdp->n_media; i++) {
        const struct sdp_media *other = &sdp->media[i];
        const bool same_track = other->section == d->media.section;
        if (i == chosen)
            continue;
        d->other_codecs[other->payload_type] |= *other->encoding && other->codec != d->media.codec;
        d->other_formats[other->payload_type] |= same_track && other->codec != SDP_OTHER;
        d->other_video |= other->video && !same_track;
    }
}

static int take_description(struct rtsp_dialogue *d, const struct rtsp_message *reply)
{
    int rc = -ENOMEM, chosen = -1;
    const bool ok = reply->status == 200;
    struct sdp *sdp = ok ? malloc(sizeof *sdp) : NULL;
    if (!ok)
        return end_by_status(d, reply);
    if (!sdp)
        return rtsp_dialogue_end(d, rc, "out of memory");
    rc = rtsp_url_base(d->base, rtsp_message_header(reply, "Content-Base", NULL),
                       rtsp_message_header(reply, "Content-Location", NULL), d->url.text);
    if (rc == 0)
        rc = sdp_parse(sdp, reply->body_bytes ? reply->body : "", reply->body_bytes);
    if (rc == 0)
        rc = rtsp_url_of_track(d->aggregate, d->base, sdp->control, false);
    if (rc < 0) {
        rtsp_dialogue_end(d, -EPROTO, "%s describes its stream in no way that framed can read",
                          d->place);
        goto out;
    }
    if (strstr(sdp->control, "://"))
        memcpy(d->base, d->aggregate, sizeof d->base);
    rc = -EINVAL;
    if ((chosen = sdp_choose_video(sdp, d->memory->payload_type)) < 0)
        rc = end_without_video(d, sdp);
    else if (d->has_media && sdp->media[chosen].codec != d->media.codec)
        rtsp_dialogue_end(d, rc, "%s offers another codec than a moment ago", d->place);
    else
        rc = 0;
out:
    if (rc == 0) {
        note_choice(d, sdp, chosen);
        d->dynamic_rate = rtsp_message_header(reply, "x-Accept-Dynamic-Rate", NULL);
        if (recall_verdict(d))
            log_choice(d, sdp, chosen);
        rc = ask_setup(d);
    }
    free(sdp);
    return rc;
}

// Returns true if `status` may mean a wrong URL and the track's URL has another form.
static bool may_merge(const struct rtsp_dialogue *d, int status)
{
    char appended[RTSP_URL_MAX], merged[RTSP_URL_MAX];
    const bool wrong =
        status == 400 || status == 404 || status == 451 || status == 455 || status == 503;
    return wrong && !d->merged &&
           rtsp_url_of_track(appended, d->base, d->media.control, false) == 0 &&
           rtsp_url_of_track(merged, d->base, d->media.control, true) == 0 &&
           strcmp(appended, merged) != 0;
}

static int take_setup(struct rtsp_dialogue *d, const struct rtsp_message *reply)
{
    if (reply->status == 461 && d->transport != TRANSPORT_TCP) {
        d->transport = TRANSPORT_TCP;
        d->fell_back = true;
        return ask_setup(d);
    }
    if (may_merge(d, reply->status)) {
        d->merged = true;
        return ask_setup(d);
    }
    if (reply->status != 200)
        return end_by_status(d, reply);
    int rc = rtsp_carriage_answer(&d->carriage, rtsp_message_header(reply, "Transport", NULL),
                                  &d->media, d->connection);
    const struct rtsp_track_options options = {
        .media = &d->media,
        .verdict = &d->memory->verdict,
        .ordered = d->transport == TRANSPORT_TCP,
        .other_video = d->other_video,
        .other_codecs = d->other_codecs,
        .ssrc = d->carriage.ssrc,
        .avoids = d->avoids,
        .avoided = d->avoided,
    };
    if (rc == -EXDEV || (rc < 0 && d->transport == TRANSPORT_MULTICAST))
        return rtsp_dialogue_fall_back(d);
    if (rc == 0)
        rc = rtsp_track_open(&d->track, &options);
    if (rc < 0)
        return rtsp_dialogue_end(d, rc, "cannot receive the video of %s: %s", d->place,
                                 strerror(-rc));
    if (d->transport == TRANSPORT_TCP)
        d->reader.framing = (struct rtsp_framing){d->carriage.channels[0], d->carriage.channels[1],
                                                  d->media.payload_type};
    rtsp_carriage_punch(&d->carriage, d->media.payload_type, rtsp_track_ssrc(d->track));
    d->phase = RTSP_STARTING;
    return ask(d, "PLAY", d->aggregate, "Range: npt=0.000-\r\n");
}

int rtsp_dialogue_start(struct rtsp_dialogue *d)
{
    d->phase = RTSP_PLAYING;
    d->play_ns = d->now_ns;
    rtsp_keep_alive_start(&d->keep_alive, d->exchange.timeout_s, d->now_ns);
    return ask(d, "OPTIONS", d->base, ""); // its reply lists the possible keep-alives
}

static int take_answer(struct rtsp_dialogue *d, const struct rtsp_message *reply)
{
    const char *listed;
    const int status = reply->status;
    if (d->phase == RTSP_LEAVING)
        return !strcmp(d->exchange.answered, "TEARDOWN") ? rtsp_dialogue_finish(d)
                                                         : ask_teardown(d);
    if (d->exchange.timeout_s)
        d->memory->session_s = d->exchange.timeout_s;
    if (d->phase != RTSP_PLAYING &&
        (status == 301 || status == 302 || status == 303 || status == 305))
        return redirect(d, reply);
    switch (d->phase) {
    case RTSP_DESCRIBING:
        return take_description(d, reply);
    case RTSP_SETTING_UP:
        return take_setup(d, reply);
    case RTSP_STARTING:
        return status == 200 ? rtsp_dialogue_start(d) : end_by_status(d, reply);
    default: // OPTIONS or a keep-alive: any status is fine while media flow
        listed = rtsp_message_header(reply, "Public", NULL);
        d->keep_alive.get_listed =
            d->keep_alive.get_listed || (listed && strcasestr(listed, "GET_PARAMETER"));
        return 0;
    }
}

static int take_request(struct rtsp_dialogue *d, const struct rtsp_message *request)
{
    char reply[RTSP_REQUEST_MAX];
    if (!strcmp(request->method, "REDIRECT") && d->phase < RTSP_PLAYING)
        return redirect(d, request);
    if (!strcmp(request->method, "REDIRECT") && d->phase == RTSP_PLAYING)
        return rtsp_dialogue_end(d, -ENODATA, "%s sends us elsewhere", d->place);
    const int bytes = rtsp_exchange_reply(request, reply);
    int rc = rtsp_connection_write(d->connection, reply, (size_t)bytes);
    return rc < 0 && rc != -ENOBUFS
               ? rtsp_dialogue_end(d, rc, "cannot answer %s: %s", d->place, strerror(-rc))
               : 0;
}

int rtsp_dialogue_take(struct rtsp_dialogue *d, const struct rtsp_message *message)
{
    char request[RTSP_REQUEST_MAX];
    if (!message->status)
        return take_request(d, message);
    const enum rtsp_answer answer = rtsp_exchange_take(&d->exchange, message);
    d->memory->digest_offered |= d->exchange.auth.digest_offered;
    switch (answer) {
    case RTSP_ANSWER_NONE:
        return 0;
    case RTSP_ANSWER_TAKEN:
        return take_answer(d, message);
    case RTSP_ANSWER_CHALLENGE:
        if (d->phase == RTSP_LEAVING && !*d->exchange.session)
            return rtsp_dialogue_finish(d); // no session to end, so no password is tried
        return send_request(d, request, rtsp_exchange_repeat(&d->exchange, d->now_ns, request));
    case RTSP_ANSWER_REFUSED:
        break;
    }
    if (d->phase == RTSP_LEAVING)
        return rtsp_dialogue_finish(d);
    if (d->phase != RTSP_PLAYING)
        return end_refused(d);
    d->keep_alive.due_ns = INT64_MAX; // more refusals might lock the account; media still flow
    return 0;
}

// Abandons a request that is unanswered when the next one is due.
int rtsp_dialogue_keep_alive(struct rtsp_dialogue *d)
{
    rtsp_exchange_abandon(&d->exchange);
    if (rtsp_keep_alive_works(&d->keep_alive, d->media_ns))
        d->memory->keep_alive_proven = true;
    rtsp_keep_alive_sent(&d->keep_alive, d->now_ns);
    return ask(d, rtsp_keep_alive_method(&d->keep_alive, d->memory->keep_alive), d->base, "");
}
