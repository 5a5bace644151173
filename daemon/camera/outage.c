#include "daemon/camera/outage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/number.h"

static const int64_t SECOND_NS = 1000000000;
static const int64_t STEADY_NS = 10 * SECOND_NS; // of pictures: the camera is steady
static const int64_t QUIET_NS = 600 * SECOND_NS; // between log lines of later failures
enum {
    LOGGED_FAILURES = 6, // consecutive ones logged one by one
    SESSION_S = 65,      // of live555, the base of most cameras' servers, unless the camera says it
    FORGETS_S = 1,       // extra time for a camera to forget a session
};

void outage_open(struct outage *outage, const char *url, struct login_pause *logins)
{
    *outage = (struct outage){
        .logins = logins,
        .retry.seed = (uint32_t)monotonic_ns() ^ (uint32_t)(uintptr_t)outage,
    };
    if (logins)
        login_pause_identify(logins, url, &outage->login);
}

int64_t outage_wait_ns(struct outage *outage)
{
    const int64_t now_ns = monotonic_ns();
    int64_t until_ns = outage->due_ns;
    if (outage->logins && until_ns <= now_ns)
        until_ns = login_pause_until(outage->logins, &outage->login, now_ns);
    return bounds_max(until_ns - now_ns, 0);
}

bool outage_is_over(struct outage *outage)
{
    if (!outage_is_quiet(outage) || monotonic_ns() - outage->running_ns < STEADY_NS)
        return false;
    outage->failures = 0;
    return true;
}

void outage_end(struct outage *outage)
{
    outage->running_ns = monotonic_ns();
    outage->room_ns = 0;
    retry_reset(&outage->retry);
    if (outage->logins)
        login_pause_accepted(outage->logins, &outage->login, outage->running_ns);
}

// Cameras lock accounts and addresses after a few wrong passwords. Another authentication scheme is
// tried at once.
static void note_refusal(struct outage *outage, const struct demux_memory *memory)
{
    const bool other_before = outage->has_other_login;
    outage->has_other_login = memory->rtsp.first_challenge;
    login_pause_refused(outage->logins, &outage->login, outage->has_other_login && !other_before,
                        monotonic_ns());
}

// A camera without room may still hold a session of ours, from a framed that was killed or a
// connection that broke. Times one try to just after it forgets that session.
static int64_t aim_at_room(struct outage *outage, int64_t ns, const struct demux_memory *memory)
{
    const int64_t now_ns = monotonic_ns();
    const int64_t session_s = memory->rtsp.session_s ? memory->rtsp.session_s : SESSION_S;
    if (!outage->room_ns)
        outage->room_ns = now_ns + (session_s + FORGETS_S) * SECOND_NS;
    const int64_t left_ns = outage->room_ns - now_ns;
    return left_ns > 0 ? bounds_min(left_ns, ns) : ns;
}

// Logs a camera that stays away, or keeps hanging up after a picture, every ten minutes instead of
// at each try.
static void log_failure(struct outage *outage, const char *why, int64_t pause_ns, bool refused)
{
    const int64_t now_ns = monotonic_ns();
    outage->failures++;
    const bool lately = outage_is_quiet(outage) && now_ns - outage->last_logged_ns < QUIET_NS;
    if (strcmp(why, outage->last_logged) == 0 && lately)
        return;
    snprintf(outage->last_logged, sizeof outage->last_logged, "%s", why);
    outage->last_logged_ns = now_ns;
    log_event(LOG_LEVEL_WARNING, "%s; next try in %.1f s%s", why, (double)pause_ns / 1e9,
              refused ? ", or with a reload"
              : outage->failures == LOGGED_FAILURES
                  ? "; the same is logged every 10 minutes from now on"
                  : "");
}

int64_t outage_begin(struct outage *outage, int rc, const char *why,
                     const struct demux_memory *memory)
{
    const bool refused = rc == -EACCES && outage->logins && outage->login.host[0];
    if (outage->running_ns && monotonic_ns() - outage->running_ns >= STEADY_NS)
        outage->failures = 0;
    // A camera that has just sent packets is there: retry at once.
    const bool sent = rc == -ETIME || (rc == -ETIMEDOUT && outage->running_ns);
    int64_t ns = 0;
    if (refused)
        note_refusal(outage, memory);
    else if (!sent || outage->failures > 0)
        ns = retry_next_ns(&outage->retry, rc == -EPERM || rc == -EACCES);
    if (rc == -EUSERS)
        ns = aim_at_room(outage, ns, memory);
    outage->running_ns = 0;
    outage->due_ns = monotonic_ns() + ns;
    if (refused)
        ns = outage_wait_ns(outage);
    log_failure(outage, why, ns, refused && ns > 0);
    return ns;
}

bool outage_is_quiet(const struct outage *outage)
{
    return outage->failures > LOGGED_FAILURES;
}
