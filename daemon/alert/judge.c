#include "daemon/alert/judge.h"

#include <string.h>

static const int64_t SECOND = 1000000000;
static const int64_t NEVER = INT64_MIN / 2, NOT_WELL = INT64_MAX;

// Lower bound of `media_timeout: auto`: the camera's thread waits for ten of the camera's own
// intervals before it reports that it retries.
static const int64_t MEDIA_AUTO_NS = 1000000000;

void judge_open(struct judge *judge)
{
    *judge = (struct judge){0};
    for (int i = 0; i < ALERT_KINDS; i++)
        judge->alert[i] =
            (struct alert){.raised_ns = NEVER, .cleared_ns = NEVER, .well_ns = NOT_WELL};
    for (int i = 0; i < JUDGE_INTERRUPTIONS; i++)
        judge->interrupted_ns[i] = NEVER;
}

static void raise_alert(struct alert *alert, int64_t now_ns, int64_t bad_ns, bool again)
{
    alert->raised = true;
    alert->again = again;
    alert->raised_ns = now_ns;
    alert->bad_ns = bad_ns;
    alert->well_ns = NOT_WELL;
    alert->interruptions = 0;
}

static bool was_cleared_lately(const struct alert *alert, int64_t now_ns,
                               const struct judge_limits *limits)
{
    return now_ns - alert->cleared_ns < JUDGE_LONGER * limits->calm_ns;
}

// Clears the alert once it has been `well` for long enough and a report is allowed (`may`). Returns
// true if it is cleared now.
static bool is_cleared(struct alert *alert, int64_t now_ns, bool well, bool may,
                       const struct judge_limits *limits)
{
    const int64_t calm = alert->again ? JUDGE_LONGER * limits->calm_ns : limits->calm_ns;
    if (!well)
        alert->well_ns = NOT_WELL;
    else if (alert->well_ns == NOT_WELL)
        alert->well_ns = now_ns;
    if (!well || !may || alert->held || now_ns - alert->well_ns < calm)
        return false;
    alert->raised = false;
    alert->cleared_ns = now_ns;
    return true;
}

// --- pictures

static void note_pictures(struct judge *judge, const struct judge_facts *facts)
{
    const bool away = facts->state != CAMERA_RUNNING;
    const bool first = !judge->begun, gone = away && !judge->away && !first;
    if (first || (away && !judge->away))
        judge->away_ns = facts->now_ns;
    if (first || facts->pictures != judge->pictures)
        judge->picture_ns = facts->now_ns;
    judge->seen |= !away || (!first && facts->pictures != judge->pictures);
    judge->begun = true;
    judge->away = away;
    if (gone) {
        judge->interrupted_ns[judge->interruptions++ % JUDGE_INTERRUPTIONS] = facts->now_ns;
        judge->alert[ALERT_DOWN].interruptions++;
        judge->alert[ALERT_FLAPPING].interruptions++;
    }
}

static bool is_down(const struct judge *judge, const struct judge_facts *facts,
                    const struct judge_limits *limits)
{
    const int64_t media = facts->media_timeout_ns > 0 ? facts->media_timeout_ns : MEDIA_AUTO_NS;
    const int64_t start = judge->seen ? 0 : facts->connect_timeout_ns;
    return judge->away && (facts->state == CAMERA_FAILED ||
                           facts->now_ns - judge->picture_ns >= media + start + limits->grace_ns);
}

static bool is_flapping(const struct judge *judge, int64_t now_ns,
                        const struct judge_limits *limits)
{
    const int64_t fifth = judge->interrupted_ns[judge->interruptions % JUDGE_INTERRUPTIONS];
    return now_ns - fifth < limits->calm_ns;
}

static bool may_tell(const struct judge *judge, int64_t now_ns, const struct judge_limits *limits)
{
    int told = 0;
    for (int i = ALERT_DOWN; i <= ALERT_FLAPPING; i++) {
        told += now_ns - judge->alert[i].raised_ns < JUDGE_LONGER * limits->calm_ns;
        told += now_ns - judge->alert[i].cleared_ns < JUDGE_LONGER * limits->calm_ns;
    }
    return told < JUDGE_EVENTS;
}

// Down and flapping share one limit of reports: the alert is reported now, or held.
static unsigned raise_connection(struct judge *judge, enum alert_kind kind, int64_t now_ns,
                                 int64_t bad_ns, bool again, bool may)
{
    struct alert *alert = &judge->alert[kind];
    const int64_t told_ns = alert->raised_ns;
    raise_alert(alert, now_ns, bad_ns, again);
    alert->held = !may;
    if (!may)
        alert->raised_ns = told_ns;
    return may ? 1u << kind : 0;
}

static unsigned tell_held(struct judge *judge, int64_t now_ns)
{
    for (int i = ALERT_DOWN; i <= ALERT_FLAPPING; i++) {
        struct alert *alert = &judge->alert[i];
        if (!alert->held)
            continue;
        alert->held = false;
        alert->raised_ns = now_ns;
        return 1u << i;
    }
    return 0;
}

// At most one of the two is raised.
static unsigned judge_connection(struct judge *judge, const struct judge_facts *facts,
                                 const struct judge_limits *limits)
{
    const int64_t now = facts->now_ns;
    struct alert *down = &judge->alert[ALERT_DOWN], *flapping = &judge->alert[ALERT_FLAPPING];
    const bool may = may_tell(judge, now, limits);
    const bool lately =
        was_cleared_lately(down, now, limits) || was_cleared_lately(flapping, now, limits);
    const unsigned told = may ? tell_held(judge, now) : 0;
    if (told)
        return told;
    if (down->raised)
        return is_cleared(down, now, !judge->away, may, limits) ? 1u << ALERT_DOWN : 0;
    if (flapping->raised && (!judge->away || now - judge->away_ns < limits->calm_ns))
        return is_cleared(flapping, now, !judge->away, may, limits) ? 1u << ALERT_FLAPPING : 0;
    if (flapping->raised || is_down(judge, facts, limits)) {
        const bool again = flapping->raised ? flapping->again : lately;
        flapping->raised = flapping->held = false; // down replaces it
        return raise_connection(judge, ALERT_DOWN, now, judge->picture_ns, again, may);
    }
    if (!is_flapping(judge, now, limits))
        return 0;
    return raise_connection(judge, ALERT_FLAPPING, now, now, lately, may);
}

// --- damage

static struct judge_bucket damage_of_minute(struct judge *judge, const struct judge_facts *facts)
{
    struct judge_bucket sum = {0}, *last = &judge->minute[JUDGE_MINUTE - 1];
    if (facts->now_ns - judge->bucket_ns >= 10 * SECOND) {
        memmove(judge->minute, judge->minute + 1, sizeof judge->minute - sizeof *last);
        *last = (struct judge_bucket){0};
        judge->bucket_ns = facts->now_ns;
    }
    // Counters fall when a reload has reopened the camera.
    if (facts->pictures >= judge->pictures && facts->damaged >= judge->damaged) {
        last->pictures += facts->pictures - judge->pictures;
        last->damaged += facts->damaged - judge->damaged;
    }
    for (int i = 0; i < JUDGE_MINUTE; i++) {
        sum.pictures += judge->minute[i].pictures;
        sum.damaged += judge->minute[i].damaged;
    }
    return sum;
}

static unsigned judge_damage(struct judge *judge, const struct judge_facts *facts,
                             const struct judge_limits *limits)
{
    struct alert *alert = &judge->alert[ALERT_DAMAGED];
    const struct judge_bucket minute = damage_of_minute(judge, facts);
    const bool bad = minute.damaged >= 5 && 10 * minute.damaged >= minute.pictures;
    const bool well = minute.pictures > 0 && 50 * minute.damaged < minute.pictures;
    bool changed = false;
    if (alert->raised)
        changed = is_cleared(alert, facts->now_ns, well, true, limits);
    else if ((changed = bad))
        raise_alert(alert, facts->now_ns, facts->now_ns,
                    was_cleared_lately(alert, facts->now_ns, limits));
    return changed ? 1u << ALERT_DAMAGED : 0;
}

// --- the scene

static unsigned judge_scene(struct judge *judge, const struct judge_facts *facts,
                            const struct judge_limits *limits)
{
    unsigned changed = 0;
    for (int i = 0; i < ALARMS; i++) {
        struct alert *alert = &judge->alert[ALERT_SCENE + i];
        const bool is = facts->alarms >> i & 1, was = alert->raised;
        if (!was && is)
            raise_alert(alert, facts->now_ns, facts->now_ns,
                        was_cleared_lately(alert, facts->now_ns, limits));
        else if (was)
            is_cleared(alert, facts->now_ns, !is && !judge->away, true, limits);
        changed |= alert->raised != was ? 1u << (ALERT_SCENE + i) : 0;
    }
    return changed;
}

unsigned judge_step(struct judge *judge, const struct judge_facts *facts,
                    const struct judge_limits *limits)
{
    if (facts->state == CAMERA_ENDED || facts->state == CAMERA_PAUSED) {
        judge->begun = judge->seen = judge->away = false; // on purpose; it may start again
        return 0;
    }
    note_pictures(judge, facts);
    unsigned changed = judge_connection(judge, facts, limits);
    changed |= judge_damage(judge, facts, limits);
    changed |= judge_scene(judge, facts, limits);
    judge->pictures = facts->pictures;
    judge->damaged = facts->damaged;
    return changed;
}

// --- names

static const char *const names[ALERT_SCENE] = {"down", "flapping", "damaged"};

const char *alert_kind_name(enum alert_kind kind)
{
    return kind < ALERT_SCENE ? names[kind] : alarm_name((enum alarm)(kind - ALERT_SCENE));
}

enum alert_kind alert_kind_find(const char *name)
{
    int kind = 0;
    while (kind < ALERT_KINDS && strcmp(alert_kind_name((enum alert_kind)kind), name) != 0)
        kind++;
    return (enum alert_kind)kind;
}
