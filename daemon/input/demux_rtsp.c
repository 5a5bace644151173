// RTSP cameras by a client of our own. A session's descriptors are polled and its access units
// taken here; beside a session that fell silent a second one, the spare, is opened, and takes over
// with its first keyframe.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/secrets.h"
#include "daemon/base/stage_watch.h"
#include "daemon/input/demux.h"
#include "daemon/input/demux_driver.h"
#include "daemon/input/rtsp_video.h"
#include "daemon/input/spare_pause.h"

static const int64_t MS = 1000000;
enum {
    POLL_MS = 50,      // how long a wait may overlook *stop
    CONNECT_MS = 1500, // without a picture: another connection is tried beside the first
    PATIENCE_MIN_MS = 1000,
    PATIENCE_INTERVALS = 10, // of the camera's, without a picture: it is silent
    INTERVALS_KNOWN = 8,     // from so many on they are believed
    INTERVALS_MEAN = 16,     // that the average is over
    INTERVAL_MAX_S = 10,     // longer is a jump of the camera's clock, or another session's
    GOODBYE_MS = 200,        // what closing may take where *stop is set
};

struct rtsp_demux {
    struct demux base; // first
    struct demux_context context;
    struct demux_memory own_memory; // where the owner keeps none
    struct demux_memory *memory;
    struct rtsp_memory learnt[2]; // by the session and by the spare, in turn
    int own;                      // which of them is the session's
    struct rtsp_session *session; // whose units are given out
    int ended;                    // why it gives no more; 0: it goes on
    struct rtsp_session *spare;   // NULL: none
    struct rtsp_session *leaving; // says goodbye; NULL: none
    struct rtsp_video *video;
    struct rtsp_unit next; // the spare's keyframe, which -EREMCHG announced
    bool has_next;
    int64_t opened_ns, spare_opened_ns; // CLOCK_MONOTONIC
    int64_t due_ns;                     // CLOCK_MONOTONIC: the first unit
    int64_t unit_ns;                    // CLOCK_MONOTONIC: the last unit came; 0: none yet
    int64_t timestamp;                  // of that unit
    int64_t pinged_ns;                  // CLOCK_MONOTONIC: in this silence; 0: not yet
    struct spare_pause pause;           // no spare is opened before it is over
    bool other_codec;                   // the last spare was offered another codec
    bool refused; // the camera has refused the spare's password since the last unit
    struct secrets *secrets;
    char description[128], why[DEMUX_WHY_MAX];
};

// --- how long the camera may be silent

// By timestamps, which neither the network nor a burst at the start changes.
static void learn_interval(struct rtsp_demux *in, const struct rtsp_unit *unit)
{
    struct demux_memory *memory = in->memory;
    const int clock_rate = rtsp_session_media(in->session)->clock_rate;
    const int64_t ticks = llabs(unit->timestamp - in->timestamp);
    if (in->unit_ns && !unit->unit.restarted && ticks < INTERVAL_MAX_S * clock_rate) {
        memory->intervals += memory->intervals < INTERVALS_MEAN;
        memory->interval_ns +=
            (ticks * 1000 * MS / clock_rate - memory->interval_ns) / memory->intervals;
    }
    in->timestamp = unit->timestamp;
}

static int64_t own_patience_ns(const struct rtsp_demux *in)
{
    const int64_t ns = PATIENCE_INTERVALS * in->memory->interval_ns;
    if (in->memory->intervals < INTERVALS_KNOWN)
        return DEMUX_PATIENCE_NS;
    return ns > PATIENCE_MIN_MS * MS ? ns : PATIENCE_MIN_MS * MS;
}

static int64_t rtsp_patience_ns(const struct demux *demux)
{
    const struct rtsp_demux *in = (const void *)demux;
    const int64_t set_ns = in->context.config->media_timeout.ns;
    return set_ns ? set_ns : own_patience_ns(in);
}

static bool is_alive(const struct rtsp_demux *in)
{
    return in->pinged_ns && rtsp_session_heard_ns(in->session) > in->pinged_ns;
}

// A camera that answers requests but sends nothing is waited for as long as any other input.
static bool is_silent(const struct rtsp_demux *in, int64_t now_ns)
{
    int64_t patience_ns = rtsp_patience_ns(&in->base);
    if (!in->unit_ns)
        return now_ns >= in->due_ns;
    if (!in->context.config->media_timeout.ns && patience_ns < DEMUX_PATIENCE_NS && is_alive(in))
        patience_ns = DEMUX_PATIENCE_NS;
    return now_ns - in->unit_ns >= patience_ns;
}

// --- the spare

// The counts of all sessions before, and of this one.
static struct rtp_statistics count_packets(const struct demux_memory *memory,
                                           const struct rtsp_session *session)
{
    const struct rtp_statistics before = memory->sessions, own = rtsp_session_statistics(session);
    return (struct rtp_statistics){
        .packets = before.packets + own.packets,
        .lost = before.lost + own.lost,
        .reordered = before.reordered + own.reordered,
        .late = before.late + own.late,
        .duplicate = before.duplicate + own.duplicate,
        .foreign = before.foreign + own.foreign,
        .restarts = before.restarts + own.restarts,
    };
}

static void count_session(struct demux_memory *memory, const struct rtsp_session *session)
{
    memory->sessions = count_packets(memory, session);
    memory->overruns += rtsp_session_overruns(session);
}

// The session's counts are kept where it gave units out.
static void leave_session(struct rtsp_demux *in, struct rtsp_session *session, int64_t now_ns)
{
    rtsp_session_close(in->leaving);
    in->leaving = session;
    if (session)
        rtsp_session_teardown(session, now_ns);
}

static void step_leaving(struct rtsp_demux *in, int64_t now_ns)
{
    if (!in->leaving || rtsp_session_step(in->leaving, now_ns) == 0)
        return;
    rtsp_session_close(in->leaving);
    in->leaving = NULL;
}

static void give_up_spare(struct rtsp_demux *in, int64_t now_ns)
{
    spare_pause_begin(&in->pause, now_ns);
    leave_session(in, in->spare, now_ns);
    in->spare = NULL;
}

// With why it ended. A password that is refused now is not tried again beside this session.
static void lose_spare(struct rtsp_demux *in, int rc, int64_t now_ns)
{
    struct rtsp_memory *own = &in->learnt[in->own];
    own->single_session |= rc == -EUSERS;
    if (rc == -EACCES) {
        own->first_challenge = in->learnt[!in->own].first_challenge;
        in->refused = true;
        in->memory->accepted = false;
        secrets_hide(in->secrets, in->why, sizeof in->why, rtsp_session_why(in->spare));
    }
    give_up_spare(in, now_ns);
    if (rc == -EACCES)
        spare_pause_for_good(&in->pause);
}

// How long the camera may send no picture before another connection is opened beside the first.
// Some always take long to answer; how often it sends pictures is not known from the first of them.
static int64_t quiet_limit_ns(const struct rtsp_demux *in)
{
    const int64_t usual_ns = 2 * in->memory->connect_ns;
    const bool rhythm_known = in->unit_ns && in->memory->intervals >= INTERVALS_KNOWN;
    return rhythm_known                 ? own_patience_ns(in) / 2
           : usual_ns > CONNECT_MS * MS ? usual_ns
                                        : CONNECT_MS * MS;
}

// A password is tried by one connection at a time until the camera has taken it: two would count as
// two wrong ones.
static bool may_open_spare(const struct rtsp_demux *in, int64_t now_ns)
{
    const char *url = in->context.config->url;
    const bool proven = in->memory->accepted || !config_url_secret(url, url, &(size_t){0});
    const bool mixes = rtsp_session_statistics(in->session).foreign > 0; // it mixes up sessions
    return proven && !mixes && in->context.config->spare != SPARE_OFF &&
           !in->learnt[in->own].single_session && spare_pause_is_over(&in->pause, now_ns);
}

static void look_for_silence(struct rtsp_demux *in, int64_t now_ns)
{
    const struct rtsp_options options = {in->context.config, &in->learnt[!in->own]};
    const int64_t since_ns = in->unit_ns ? in->unit_ns : rtsp_session_heard_ns(in->session);
    if (now_ns - since_ns < quiet_limit_ns(in))
        return;
    if (in->unit_ns && !in->pinged_ns && !in->ended) {
        rtsp_session_ping(in->session);
        in->pinged_ns = now_ns;
    }
    if (in->spare || !may_open_spare(in, now_ns))
        return;
    in->learnt[!in->own] = in->learnt[in->own];
    in->spare_opened_ns = now_ns;
    if (rtsp_session_open(&in->spare, &options, now_ns) < 0)
        spare_pause_begin(&in->pause, now_ns);
}

static bool same_codec(const struct rtsp_demux *in, const struct rtsp_session *other)
{
    return rtsp_session_media(other)->codec == rtsp_session_media(in->session)->codec;
}

static void take_over(struct rtsp_demux *in, int64_t now_ns)
{
    if (in->unit_ns)
        log_event(LOG_LEVEL_INFO, "silent for %.1f s: another connection takes over",
                  (double)(now_ns - in->unit_ns) / 1e9);
    count_session(in->memory, in->session);
    leave_session(in, in->session, now_ns); // may learn that its keep-alives were not heeded
    struct rtsp_memory *own = &in->learnt[in->own], *next = &in->learnt[!in->own];
    next->keep_alive = own->keep_alive;
    next->keep_alive_proven = own->keep_alive_proven;
    in->own = !in->own;
    in->session = in->spare;
    in->opened_ns = in->spare_opened_ns;
    in->ended = 0;
    in->spare = NULL;
    in->pause = (struct spare_pause){0};
}

static int next_unit(struct rtsp_session *session, int64_t now_ns, struct rtsp_unit *ret)
{
    int rc = rtsp_session_read(session, now_ns, ret);
    if (rc == -EAGAIN && (rc = rtsp_session_step(session, now_ns)) == 0)
        rc = rtsp_session_read(session, now_ns, ret);
    return rc;
}

// The camera has become another one, which the session cannot say.
static bool offers_other_codec(const struct rtsp_demux *in)
{
    return in->spare && rtsp_session_media(in->spare) && !same_codec(in, in->spare);
}

// 0: its keyframe is *ret, and the spare is the session now.
static int read_spare(struct rtsp_demux *in, int64_t now_ns, struct rtsp_unit *ret)
{
    int rc = -EAGAIN;
    while (in->spare && (rc = next_unit(in->spare, now_ns, ret)) == 0) {
        if (!ret->unit.keyframe || ret->unit.damaged || offers_other_codec(in))
            continue;
        take_over(in, now_ns);
        return 0;
    }
    if (rc == -EAGAIN)
        return rc;
    lose_spare(in, rc, now_ns);
    return -EAGAIN;
}

// --- reading

static void note_unit(struct rtsp_demux *in, const struct rtsp_unit *unit, int64_t now_ns)
{
    const int64_t arrival_ns = unit->unit.arrived_ns - unit->unit.received_ns;
    learn_interval(in, unit);
    if (unit->unit.damaged || unit->unit.reference_lost)
        rtsp_session_want_keyframe(in->session);
    if (!in->unit_ns) {
        in->memory->connect_ns = now_ns - in->opened_ns;
        in->memory->accepted = true;
    }
    in->memory->arrival_ns += (arrival_ns - in->memory->arrival_ns) / INTERVALS_MEAN;
    in->unit_ns = now_ns;
    in->pinged_ns = 0;
    in->refused = false;
    if (in->spare)
        give_up_spare(in, now_ns);
}

static void wait_for_more(const struct rtsp_demux *in, int64_t now_ns)
{
    struct rtsp_session *const sessions[] = {in->ended ? NULL : in->session, in->spare,
                                             in->leaving};
    struct pollfd fds[3 * RTSP_POLL_MAX];
    int64_t wake_ns = now_ns + POLL_MS * MS, due_ns = INT64_MAX;
    int n = 0;
    for (int i = 0; i < 3; i++) {
        if (sessions[i])
            n += rtsp_session_poll(sessions[i], fds + n, &due_ns);
        wake_ns = due_ns < wake_ns ? due_ns : wake_ns;
    }
    const int64_t ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
    ppoll(fds, (nfds_t)n, &(struct timespec){ns / (1000 * MS), ns % (1000 * MS)}, NULL);
}

// Why no more units come; 0: they may. Where a password was refused, another connection would only
// be another wrong try.
static int why_ended(const struct rtsp_demux *in, int64_t now_ns)
{
    if (in->ended == -EACCES || (in->refused && !in->unit_ns))
        return -EACCES;
    const int rc = in->ended && !in->spare ? in->ended : is_silent(in, now_ns) ? -ETIMEDOUT : 0;
    return rc < 0 && in->refused ? -EACCES : rc;
}

// As demux_read, with a unit in place of a packet.
static int read_unit(struct rtsp_demux *in, struct rtsp_unit *ret)
{
    for (;;) {
        const int64_t now_ns = monotonic_ns();
        if (atomic_load(in->context.stop))
            return -ECANCELED;
        int rc = in->ended ? in->ended : next_unit(in->session, now_ns, ret);
        if (rc == 0) {
            note_unit(in, ret, now_ns);
            return ret->unit.restarted && ret->unit.keyframe ? -EREMCHG : 0;
        }
        in->ended = rc == -EAGAIN ? 0 : rc;
        if (read_spare(in, now_ns, ret) == 0) {
            const bool goes_on = in->unit_ns != 0;
            note_unit(in, ret, now_ns);
            return goes_on ? -EREMCHG : 0;
        }
        if (offers_other_codec(in)) {
            give_up_spare(in, now_ns);
            in->other_codec = true;
            in->ended = -ETIME;
        }
        if ((rc = why_ended(in, now_ns)) < 0)
            return rc;
        look_for_silence(in, now_ns);
        step_leaving(in, now_ns);
        wait_for_more(in, now_ns);
    }
}

// The sets that the SDP named are not those of the stream where it has changed since, or where they
// were wrong from the start.
static int make_packet(struct rtsp_demux *in, struct packet *ret)
{
    size_t bytes;
    const uint8_t *sets = rtsp_session_sets(in->session, &bytes);
    const int rc = in->next.unit.keyframe ? rtsp_video_sets(in->video, sets, bytes) : 0;
    return rc < 0 ? rc : rtsp_video_packet(in->video, &in->next, ret);
}

static int rtsp_read(struct demux *demux, struct packet *ret)
{
    struct rtsp_demux *in = (void *)demux;
    int rc = 0;
    stage_enter(in->context.stages, STAGE_READ,
                in->unit_ns ? rtsp_patience_ns(demux) + DEMUX_PATIENCE_NS
                            : in->context.config->connect_timeout.ns);
    if (!in->has_next) {
        rc = read_unit(in, &in->next);
        if (rc == 0 || rc == -EREMCHG)
            in->has_next = true;
        if (rc == -EREMCHG)
            rtsp_video_restart(in->video);
    }
    if (rc < 0)
        return rc;
    in->has_next = false;
    return make_packet(in, ret);
}

// A password as people write it may look like a host's name.
static const char *hide_secrets(struct rtsp_demux *in)
{
    const char *said = in->other_codec ? "the camera offers another codec by now"
                       : in->session   ? rtsp_session_why(in->session)
                                       : "";
    if (!in->refused)
        secrets_hide(in->secrets, in->why, sizeof in->why, said);
    return in->why;
}

static const char *rtsp_why(const struct demux *demux)
{
    return hide_secrets((void *)demux);
}

// --- opening and closing

// Where the session answers after all, the spare is not to try the password beside it.
static void step_spare(struct rtsp_demux *in, int64_t now_ns)
{
    const bool answers = !in->ended && rtsp_session_heard_ns(in->session) > in->spare_opened_ns;
    if (in->spare && answers)
        give_up_spare(in, now_ns);
    int rc = in->spare ? rtsp_session_step(in->spare, now_ns) : 0;
    if (rc < 0) {
        lose_spare(in, rc, now_ns);
    } else if (in->spare && rtsp_session_plays(in->spare)) {
        take_over(in, now_ns);
    }
}

// Until PLAY is under way: the answer, and pictures, come while the owner opens a decoder.
static int connect_session(struct rtsp_demux *in)
{
    for (;;) {
        const int64_t now_ns = monotonic_ns();
        if (atomic_load(in->context.stop))
            return -ECANCELED;
        if (!in->ended)
            in->ended = rtsp_session_step(in->session, now_ns);
        if (in->ended || !rtsp_session_plays(in->session))
            step_spare(in, now_ns);
        const int rc = why_ended(in, now_ns);
        if (rc < 0)
            return rc;
        if (!in->ended && rtsp_session_plays(in->session))
            return 0;
        look_for_silence(in, now_ns);
        step_leaving(in, now_ns);
        wait_for_more(in, now_ns);
    }
}

static void explain_failure(struct rtsp_demux *in, int rc, char *why, size_t size)
{
    char redacted[512];
    config_url_redacted(in->context.config->url, redacted, sizeof redacted);
    const char *said = hide_secrets(in), *mistake = config_url_mistake(in->context.config->url);
    if (rc == -EINVAL && !in->session)
        snprintf(why, size, "cannot open %s: the URL %s", redacted,
                 mistake ? mistake : "is not one of RTSP");
    else if (rc == -ECANCELED)
        snprintf(why, size, "stopped while opening %s", redacted);
    else if (rc == -ETIMEDOUT)
        snprintf(why, size, "%s gave no picture within %g s", redacted,
                 (double)in->context.config->connect_timeout.ns / 1e9);
    else
        snprintf(why, size, "cannot open %s: %s", redacted, *said ? said : strerror(-rc));
}

static void rtsp_close(struct demux *demux);

static int rtsp_open(struct demux **ret, const struct url_input *source,
                     const struct demux_context *context, char *why, size_t size)
{
    struct rtsp_demux *in = calloc(1, sizeof *in);
    size_t bytes;
    if (!in || secrets_open(&in->secrets, context->config) < 0) {
        snprintf(why, size, "out of memory");
        free(in);
        return -ENOMEM;
    }
    in->base = (struct demux){&demux_rtsp, source};
    in->context = *context;
    in->memory = context->memory ? context->memory : &in->own_memory;
    in->opened_ns = monotonic_ns();
    in->due_ns = in->opened_ns + context->config->connect_timeout.ns;
    stage_enter(context->stages, STAGE_CONNECT, context->config->connect_timeout.ns);
    in->learnt[in->own] = in->memory->rtsp;
    const struct rtsp_options options = {context->config, &in->learnt[in->own]};
    int rc = rtsp_session_open(&in->session, &options, in->opened_ns);
    if (rc == 0)
        rc = connect_session(in);
    if (rc == 0) {
        const uint8_t *sets = rtsp_session_sets(in->session, &bytes);
        rc = rtsp_video_open(&in->video, rtsp_session_media(in->session), sets, bytes);
    }
    if (rc < 0) {
        explain_failure(in, rc, why, size);
        rtsp_close(&in->base);
        return rc == -ENODATA ? -EIO : rc; // an end before there was a stream
    }
    *ret = &in->base;
    return 0;
}

// The camera hears of it even where *stop is set: it would else keep its session.
static void rtsp_close(struct demux *demux)
{
    struct rtsp_demux *in = (void *)demux;
    int64_t now_ns = monotonic_ns();
    const bool stopped = atomic_load(in->context.stop);
    const int64_t limit_ns = stopped ? GOODBYE_MS * MS : in->context.config->close_timeout.ns;
    const int64_t end_ns = now_ns + limit_ns;
    stage_enter(in->context.stages, STAGE_CLOSE, limit_ns);
    rtsp_session_close(in->spare);
    in->spare = NULL;
    if (in->session)
        count_session(in->memory, in->session);
    leave_session(in, in->session, now_ns);
    in->session = NULL;
    in->memory->rtsp = in->learnt[in->own];
    in->memory->accepted &= in->ended != -EACCES;
    while (in->leaving && (now_ns = monotonic_ns()) < end_ns) {
        step_leaving(in, now_ns);
        if (in->leaving)
            wait_for_more(in, now_ns);
    }
    rtsp_session_close(in->leaving);
    rtsp_video_close(in->video);
    secrets_close(in->secrets);
    free(in);
}

// --- what is asked of it

static const struct AVCodecParameters *rtsp_parameters(const struct demux *demux)
{
    const struct rtsp_demux *in = (const void *)demux;
    return rtsp_video_parameters(in->video);
}

static const char *rtsp_describe(const struct demux *demux)
{
    struct rtsp_demux *in = (void *)demux;
    snprintf(in->description, sizeof in->description, "%s over rtsp/%s",
             rtsp_video_describe(in->video), rtsp_session_transport(in->session));
    return in->description;
}

static int rtsp_orientation(const struct demux *demux)
{
    (void)demux; // its pictures alone say it
    return ORIENTATION_UPRIGHT;
}

static void rtsp_rate(const struct demux *demux, int *num, int *den)
{
    const struct rtsp_demux *in = (const void *)demux;
    rtsp_video_rate(in->video, num, den);
}

static void rtsp_network(const struct demux *demux, struct demux_network *ret)
{
    const struct rtsp_demux *in = (const void *)demux;
    const struct rtp_statistics all = count_packets(in->memory, in->session);
    *ret = (struct demux_network){
        .transport = rtsp_session_transport(in->session),
        .picture_end = picture_end_name(in->learnt[in->own].verdict.end),
        .packets = all.packets,
        .lost = all.lost,
        .reordered = all.reordered,
        .late = all.late,
        .duplicate = all.duplicate,
        .foreign = all.foreign,
        .restarts = all.restarts,
        .overruns = in->memory->overruns + rtsp_session_overruns(in->session),
        .arrival_ns = in->memory->arrival_ns,
    };
}

static int rtsp_rewind(struct demux *demux)
{
    (void)demux;
    return -ESPIPE;
}

const struct demux_driver demux_rtsp = {
    .open = rtsp_open,
    .parameters = rtsp_parameters,
    .describe = rtsp_describe,
    .orientation = rtsp_orientation,
    .rate = rtsp_rate,
    .network = rtsp_network,
    .patience_ns = rtsp_patience_ns,
    .read = rtsp_read,
    .why = rtsp_why,
    .rewind = rtsp_rewind,
    .close = rtsp_close,
    .knows_losses = true,
};
