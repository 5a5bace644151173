// RTSP cameras with a client of our own: makes packets of a session's access units. Replaces the
// connection of a camera that answers nothing.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"
#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/number.h"
#include "daemon/base/stage_watch.h"
#include "daemon/source/demux.h"
#include "daemon/source/rtsp_video.h"

static const int64_t MS = 1000000, SECOND_NS = 1000 * MS, HOUR_NS = 3600 * SECOND_NS;
enum {
    ANSWER_MS = 1500, // without an answer to a request: the connection is given up
    PATIENCE_MIN_MS = 1000,
    PATIENCE_INTERVALS = 10, // usual intervals without a picture: the camera is silent
    INTERVALS_KNOWN = 8,     // intervals after which the mean is trusted
    INTERVALS_MEAN = 16,
    INTERVAL_MAX_S = 120, // a longer one is a jump of the camera's clock
    UNKNOWN_S = 90,       // patience with an answering camera of unknown interval
    PING_S = 20,          // between two pings of a silent camera
    PING_LATE_S = 5,      // how late the answer to a ping may be
    GOODBYE_MS = 200,     // limit for closing when *stop is set
};

struct rtsp_demux {
    struct demux base; // first
    struct demux_context context;
    struct demux_memory own_memory; // used if the owner keeps none
    struct demux_memory *memory;
    struct rtsp_session *session;
    struct rtsp_video *video;
    struct rtsp_unit next; // the keyframe that -EREMCHG announced
    bool has_next, next_old;
    struct replay replay; // of the present session
    enum sdp_codec codec; // of the first session; SDP_OTHER before its description
    // All CLOCK_MONOTONIC; 0: unset.
    int64_t due_ns;      // deadline for the answer to PLAY
    int64_t answered_ns; // answer to PLAY in this connection, and to OPTIONS after it unless
                         // PLAY is enough
    int64_t unit_ns;     // arrival of the last unit
    int64_t pinged_ns;   // last ping in this silence
    int64_t alive_ns;    // answer to a ping in this silence
    int64_t time_ns;     // of the last unit, by its timestamp
    int quick;           // short intervals in a row up to the last unit
    bool silent;         // ended because nothing arrived
    bool mute;           // ended without an answer: TEARDOWN would get none either
    struct secrets *secrets;
};

// --- repeated pictures

static const int64_t CACHED_MAX_NS = 20 * INT64_C(1000000000); // no cache is longer

// Hashes eight bytes at a time: the whole stream passes here.
static uint64_t hash_unit(const uint8_t *data, size_t bytes)
{
    uint64_t hash = HASH_BEGIN ^ bytes, word;
    for (; bytes >= sizeof word; data += sizeof word, bytes -= sizeof word) {
        memcpy(&word, data, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    }
    return hash_bytes(hash, data, bytes);
}

static bool is_known(const struct replay_memory *memory, uint64_t hash)
{
    for (int i = 0; i < REPLAY_UNITS; i++)
        if (memory->hashes[i] == hash)
            return true;
    return false;
}

// Timestamps may stand still, or go back for reordered pictures. Pictures that were ready count as
// live after CACHED_MAX_NS: no cache is that long, so the box is too busy.
static bool comes_at_its_pace(const struct replay *replay, const struct rtsp_unit *unit,
                              int64_t usual_ns)
{
    const int64_t received_ns = unit->unit.received_ns;
    const int64_t step_ns = bounds_max(unit->time_ns - replay->last_time_ns, usual_ns);
    const bool live = unit->waited || received_ns - replay->first_ns > CACHED_MAX_NS;
    return live && replay->units > 0 && received_ns - replay->last_ns >= step_ns / 2;
}

bool replay_add(struct replay *replay, struct replay_memory *memory, const struct rtsp_unit *unit,
                int64_t usual_ns)
{
    const struct access_unit *picture = &unit->unit;
    const uint64_t hash = hash_unit(picture->data, picture->bytes);
    if (replay->units == 0)
        replay->first_ns = picture->received_ns;
    const bool again = picture->received_ns - replay->first_ns <= memory->silent_ns;
    if (memory->n == 0)
        replay->live = true; // nothing was sent before
    if (!replay->news && !picture->damaged && !picture->hole && !is_known(memory, hash))
        replay->live = replay->news = true;
    else if (comes_at_its_pace(replay, unit, usual_ns) && (memory->silent_ns == 0 || !again))
        replay->live = true;
    memory->hashes[memory->n++ % REPLAY_UNITS] = hash;
    replay->units++;
    replay->last_ns = picture->received_ns;
    replay->last_time_ns = unit->time_ns;
    return !replay->live;
}

void replay_end(const struct replay *replay, struct replay_memory *memory, bool silent)
{
    const int64_t length_ns = replay->last_ns - replay->first_ns;
    if (replay->units == 0)
        return;
    memory->silent_ns = 0;
    if (silent && !replay->news && length_ns <= CACHED_MAX_NS)
        memory->silent_ns = bounds_max(length_ns, 1);
}

// --- how long the camera may be silent

static bool knows_rhythm(const struct rtsp_demux *in)
{
    return in->memory->intervals >= INTERVALS_KNOWN;
}

// Uses timestamps: neither the network nor a burst at the start changes them. Short intervals in a
// row end a longer patience.
static void learn_interval(struct rtsp_demux *in, const struct rtsp_unit *unit)
{
    struct demux_memory *memory = in->memory;
    const int64_t ns = llabs(unit->time_ns - in->time_ns);
    if (in->unit_ns && !unit->unit.restarted && ns < INTERVAL_MAX_S * SECOND_NS) {
        memory->intervals += memory->intervals < INTERVALS_MEAN;
        memory->interval_ns += (ns - memory->interval_ns) / memory->intervals;
        in->quick = ns < DEMUX_PATIENCE_NS / 2 && !in->next_old ? in->quick + 1 : 0;
    }
    if (in->quick >= INTERVALS_KNOWN)
        memory->silence_ns = 0;
    in->time_ns = unit->time_ns;
}

// Returns media_timeout, or ten intervals, but at most 5 s, or 2.5 intervals of a slow camera. A
// camera that answers requests (`alive`) may send a picture a minute, may be set to send none, or
// may have slowed down.
static int64_t patience_ns(const struct rtsp_demux *in, bool alive)
{
    const int64_t set_ns = in->context.config->media_timeout.ns;
    const int64_t interval_ns = in->memory->interval_ns;
    const int64_t unknown_ns = bounds_max(in->memory->silence_ns, DEMUX_PATIENCE_NS);
    if (set_ns)
        return set_ns;
    if (!knows_rhythm(in))
        return alive ? bounds_max(unknown_ns, UNKNOWN_S * SECOND_NS) : unknown_ns;
    const int64_t own_ns =
        bounds_max(bounds_min(PATIENCE_INTERVALS * interval_ns,
                              bounds_max(DEMUX_PATIENCE_NS, interval_ns * 5 / 2)),
                   PATIENCE_MIN_MS * MS);
    return alive ? bounds_max(own_ns, unknown_ns) : own_ns;
}

static bool is_alive(const struct rtsp_demux *in, int64_t now_ns)
{
    return in->alive_ns && now_ns - in->alive_ns < (PING_S + PING_LATE_S) * SECOND_NS;
}

static int64_t silent_since_ns(const struct rtsp_demux *in)
{
    return in->unit_ns ? in->unit_ns : in->answered_ns;
}

static bool is_silent(const struct rtsp_demux *in, int64_t now_ns)
{
    if (!in->unit_ns && now_ns < in->due_ns)
        return false;
    return !silent_since_ns(in) ||
           now_ns - silent_since_ns(in) >= patience_ns(in, is_alive(in, now_ns));
}

// Pings the camera after half of the patience, and then every PING_S.
static void ping_silent_camera(struct rtsp_demux *in, int64_t now_ns)
{
    const int64_t since_ns = silent_since_ns(in);
    if (in->pinged_ns && in->session->heard_ns > in->pinged_ns)
        in->alive_ns = in->session->heard_ns;
    if (!since_ns || now_ns - since_ns < patience_ns(in, false) / 2 ||
        (in->pinged_ns && now_ns - in->pinged_ns < PING_S * SECOND_NS))
        return;
    rtsp_session_ping(in->session);
    in->pinged_ns = now_ns;
}

// Doubles the patience after a silence in two cases: the interval is unknown and the camera answers
// no request, like some that send a picture a minute; or the interval is known and the camera
// answers, so that it may have slowed down. Old pictures alone do not show the latter.
static int end_silent(struct rtsp_demux *in, int64_t now_ns)
{
    const bool alive = is_alive(in, now_ns);
    const int64_t waited_ns = patience_ns(in, alive);
    const bool slowed = alive && in->quick < INTERVALS_KNOWN && (in->replay.news || !in->unit_ns);
    in->mute = !alive;
    in->silent = true;
    if (silent_since_ns(in) && (knows_rhythm(in) ? slowed : !alive))
        in->memory->silence_ns = bounds_min(2 * waited_ns, UNKNOWN_S * SECOND_NS);
    return -ETIMEDOUT;
}

// --- another connection to a camera that does not answer

static void count_session(struct demux_network *all, const struct rtsp_session *session)
{
    const struct rtp_statistics own = rtsp_session_statistics(session);
    all->packets += own.packets;
    all->lost += own.lost;
    all->reordered += own.reordered;
    all->late += own.late;
    all->duplicate += own.duplicate;
    all->foreign += own.foreign;
    all->restarts += own.restarts;
    all->overruns += (uint64_t)session->carriage.overruns[0] + session->carriage.overruns[1];
}

// An unproven password is not sent again before connect_timeout: two tries would count as two wrong
// ones.
static bool may_replace(const struct rtsp_demux *in)
{
    return in->memory->accepted || !config_url_login(in->context.config->url, &(size_t){0});
}

// Some cameras always answer slowly.
static int64_t answer_limit_ns(const struct rtsp_demux *in)
{
    if (!may_replace(in))
        return HOUR_NS;
    return bounds_max(bounds_max(2 * in->memory->connect_ns, ANSWER_MS * MS),
                      in->memory->answer_ns);
}

static bool has_begun(const struct rtsp_session *session) // PLAY was answered, or media arrived
{
    return session->play_ns || session->media_ns;
}

// Returns true if the answer to PLAY proves the connection. It may die after that or after the
// first picture, but some slow cameras answer nothing there. The first such connection is replaced.
static bool is_play_enough(const struct rtsp_demux *in)
{
    const struct demux_memory *memory = in->memory;
    const bool slow = memory->deaf || in->context.config->media_timeout.ns || !may_replace(in);
    const bool by_media = in->unit_ns && !in->session->play_ns;
    return memory->intervals || by_media || (slow && !memory->answers);
}

static int open_session(struct rtsp_demux *in)
{
    struct demux_memory *memory = in->memory;
    const bool known =
        in->context.config->media_timeout.ns || knows_rhythm(in) || memory->silence_ns;
    memory->rtsp.patience_ns = known ? patience_ns(in, false) : 0;
    return rtsp_session_open(&in->session, in->context.config, &memory->rtsp, in->context.stop);
}

// Replaces the session. The next connection waits twice as long for an answer.
static int reopen_session(struct rtsp_demux *in)
{
    struct rtsp_session *former = in->session;
    in->memory->answer_ns = bounds_min(2 * answer_limit_ns(in), UNKNOWN_S * SECOND_NS);
    const int rc = open_session(in);
    if (rc < 0)
        return rc;
    count_session(&in->memory->network, former);
    rtsp_session_close(former, 0);
    in->replay = (struct replay){0};
    return 0;
}

// Connects until PLAY was sent: the answer and pictures arrive while the owner opens a decoder.
static int connect_session(struct rtsp_demux *in)
{
    int rc;
    while ((rc = rtsp_session_play(in->session, in->due_ns, answer_limit_ns(in))) == -EAGAIN)
        if ((rc = reopen_session(in)) < 0)
            return rc;
    in->memory->accepted &= rc != -EACCES;
    return rc;
}

static void enter_read_stage(struct rtsp_demux *in)
{
    stage_enter(in->context.stages, STAGE_READ,
                bounds_max(patience_ns(in, true), in->context.config->connect_timeout.ns) +
                    DEMUX_PATIENCE_NS);
}

// Connects again for the session, to TCP or elsewhere, with times of its own.
static int connect_again(struct rtsp_demux *in)
{
    in->answered_ns = in->pinged_ns = in->alive_ns = 0;
    in->due_ns = monotonic_ns() + in->context.config->connect_timeout.ns;
    enter_read_stage(in);
    return connect_session(in);
}

static void note_answer(struct rtsp_demux *in, int64_t now_ns)
{
    const bool answered = in->session->play_ns && !in->session->open; // also what followed PLAY
    in->memory->answers |= answered;
    if (in->answered_ns || !(is_play_enough(in) ? has_begun(in->session) : answered))
        return;
    in->answered_ns = now_ns;
    in->memory->connect_ns = now_ns - in->session->tried_ns;
    in->memory->answer_ns = 0;
}

// Handles the connection while there is no unit. Returns 0, -ETIMEDOUT, or why it ended.
static int keep_waiting(struct rtsp_demux *in)
{
    const int64_t now_ns = in->session->now_ns; // everything before was read; what follows was not
    note_answer(in, now_ns);
    if (is_silent(in, now_ns))
        return end_silent(in, now_ns);
    if (!in->answered_ns && now_ns - in->session->heard_ns >= answer_limit_ns(in)) {
        in->memory->deaf |= has_begun(in->session);
        if (in->unit_ns)
            return end_silent(in, now_ns);
        const int rc = reopen_session(in);
        return rc < 0 ? rc : connect_session(in);
    }
    ping_silent_camera(in, now_ns);
    return 0;
}

// --- reading

static void note_unit(struct rtsp_demux *in, const struct rtsp_unit *unit, int64_t now_ns)
{
    struct demux_memory *memory = in->memory;
    const int64_t arrival_ns = unit->unit.arrived_ns - unit->unit.received_ns;
    in->next_old = replay_add(&in->replay, &memory->replay, unit, memory->interval_ns);
    if (in->next_old && in->replay.units == 2)
        log_event(LOG_LEVEL_INFO, "it sends pictures again that it has sent before: they are not "
                                  "shown");
    learn_interval(in, unit);
    if (unit->unit.damaged || unit->unit.reference_lost)
        in->session->wants_keyframe = true;
    memory->accepted = true;
    memory->network.arrival_ns += (arrival_ns - memory->network.arrival_ns) / INTERVALS_MEAN;
    in->unit_ns = now_ns;
    in->pinged_ns = in->alive_ns = 0;
}

// Like demux_read, with a unit instead of a packet.
static int read_unit(struct rtsp_demux *in, struct rtsp_unit *ret)
{
    int rc;
    while ((rc = rtsp_session_read(in->session, ret)) != 0) {
        in->memory->accepted &= rc != -EACCES;
        if (rc == -EAGAIN)
            rc = keep_waiting(in);
        else if (rc == -ERESTART)
            rc = connect_again(in);
        if (rc < 0)
            return rc;
    }
    if (in->session->media.codec != in->codec)
        return -ETIME;
    note_unit(in, ret, monotonic_ns());
    return ret->unit.restarted && ret->unit.keyframe ? -EREMCHG : 0;
}

// Updates the parameter sets at keyframes: the SDP's may be outdated, or wrong from the start.
static int make_packet(struct rtsp_demux *in, struct packet *ret)
{
    const struct depacketizer *from = in->session->track->depacketizer;
    int rc = in->next.unit.keyframe ? rtsp_video_sets(in->video, from->sets, from->sets_bytes) : 0;
    if (rc < 0 || (rc = rtsp_video_packet(in->video, &in->next, ret)) < 0)
        return rc;
    ret->old = in->next_old;
    return 0;
}

static void explain(struct rtsp_demux *in);
static void note_facts(struct rtsp_demux *in);

static int rtsp_read(struct demux *demux, struct packet *ret)
{
    struct rtsp_demux *in = (void *)demux;
    int rc = 0;
    enter_read_stage(in);
    if (!in->has_next) {
        rc = read_unit(in, &in->next);
        if (rc == 0 || rc == -EREMCHG)
            in->has_next = true;
    }
    if (rc == 0) {
        in->has_next = false;
        rc = make_packet(in, ret);
    }
    if (rc < 0 && rc != -EREMCHG)
        explain(in);
    note_facts(in);
    return rc;
}

static bool offers_other_codec(const struct rtsp_demux *in)
{
    return in->session && in->session->media.codec != SDP_OTHER && in->codec != SDP_OTHER &&
           in->session->media.codec != in->codec;
}

// Hides secrets: a password in a malformed URL may look like a host's name.
static void explain(struct rtsp_demux *in)
{
    const bool nothing_new = in->replay.units > 0 && !in->replay.live;
    const char *said = offers_other_codec(in) ? "the camera offers another codec by now"
                       : nothing_new          ? "sent nothing but pictures that it had sent before"
                       : in->session          ? in->session->why
                                              : "";
    secrets_hide(in->secrets, in->base.why, sizeof in->base.why, said);
}

// --- opening and closing

static void explain_failure(struct rtsp_demux *in, int rc, char *why, size_t size)
{
    char url[512];
    config_camera_url(in->context.config, url, sizeof url);
    const char *mistake = config_url_mistake(in->context.config->url);
    explain(in);
    if (rc == -EINVAL && !in->session)
        snprintf(why, size, "cannot open %s: the URL %s", url,
                 mistake ? mistake : "is not one of RTSP");
    else if (rc == -ECANCELED)
        snprintf(why, size, "stopped while opening %s", url);
    else if (rc == -ETIMEDOUT)
        snprintf(why, size, "%s gave no picture within %g s", url,
                 (double)in->context.config->connect_timeout.ns / 1e9);
    else
        snprintf(why, size, "cannot open %s: %s", url,
                 in->base.why[0] ? in->base.why : strerror(-rc));
}

static void rtsp_close(struct demux *demux);

static int rtsp_open(struct demux **ret, const struct url_input *source,
                     const struct demux_context *context, char *why, size_t size)
{
    struct rtsp_demux *in = calloc(1, sizeof *in);
    if (!in || secrets_open(&in->secrets, context->config) < 0) {
        snprintf(why, size, "out of memory");
        free(in);
        return -ENOMEM;
    }
    in->base = (struct demux){.driver = &demux_rtsp, .source = source, .knows_losses = true};
    in->context = *context;
    in->memory = context->memory ? context->memory : &in->own_memory;
    in->due_ns = monotonic_ns() + context->config->connect_timeout.ns;
    stage_enter(context->stages, STAGE_CONNECT, context->config->connect_timeout.ns);
    int rc = open_session(in);
    if (rc == 0)
        rc = connect_session(in);
    if (rc == 0) {
        const struct depacketizer *from = in->session->track->depacketizer;
        in->codec = in->session->media.codec;
        rc = rtsp_video_open(&in->video, &in->session->media, from->sets, from->sets_bytes);
    }
    if (rc < 0) {
        explain_failure(in, rc, why, size);
        rtsp_close(&in->base);
        return rc == -ENODATA ? -EIO : rc; // the input ended before there was a stream
    }
    in->base.parameters = in->video->parameters;
    note_facts(in);
    *ret = &in->base;
    return 0;
}

// Sends TEARDOWN even when *stop is set: the camera would otherwise keep its session.
static void rtsp_close(struct demux *demux)
{
    struct rtsp_demux *in = (void *)demux;
    const bool stopped = atomic_load(in->context.stop);
    const int64_t limit_ns = stopped ? GOODBYE_MS * MS : in->context.config->close_timeout.ns;
    stage_enter(in->context.stages, STAGE_CLOSE, limit_ns);
    if (in->session) {
        count_session(&in->memory->network, in->session);
        replay_end(&in->replay, &in->memory->replay, in->silent);
        rtsp_session_close(in->session, in->mute ? 0 : limit_ns);
    }
    rtsp_video_close(in->video);
    secrets_close(in->secrets);
    free(in);
}

// --- what the owner reads

static void note_facts(struct rtsp_demux *in)
{
    struct demux *base = &in->base;
    base->rate_num = in->video->rate_num;
    base->rate_den = in->video->rate_den;
    base->patience_ns = patience_ns(in, false);
    base->network = in->memory->network;
    count_session(&base->network, in->session);
    base->transport = base->network.transport = rtsp_session_transport(in->session);
    base->network.picture_end = picture_end_name(in->memory->rtsp.verdict.end);
}

const struct demux_driver demux_rtsp = {
    .open = rtsp_open,
    .read = rtsp_read,
    .close = rtsp_close,
};
