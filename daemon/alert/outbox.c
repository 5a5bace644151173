#include "daemon/alert/outbox.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

// --- events

void alert_event_id(const struct alert_event *event, char to[ALERT_ID_MAX])
{
    snprintf(to, ALERT_ID_MAX, "%s-%s-%" PRId64, event->camera, alert_kind_name(event->kind),
             event->raised_ms);
}

static void put_duration(FILE *to, int64_t seconds)
{
    if (seconds < 120)
        fprintf(to, "%" PRId64 " s", seconds);
    else if (seconds < 7200)
        fprintf(to, "%" PRId64 " min", seconds / 60);
    else
        fprintf(to, "%" PRId64 " h", seconds / 3600);
}

static const char *end_text(enum alert_kind kind)
{
    switch (kind) {
    case ALERT_DOWN:
        return "shows pictures again";
    case ALERT_FLAPPING:
        return "no longer flaps";
    case ALERT_DAMAGED:
        return "delivers whole pictures again";
    default:
        return NULL;
    }
}

void alert_event_text(const struct alert_event *event, char text[ALERT_TEXT_MAX])
{
    const char *kind = alert_kind_name(event->kind);
    const char *end = end_text(event->kind);
    FILE *to = fmemopen(text, ALERT_TEXT_MAX, "w");
    text[0] = 0;
    if (!to)
        return;
    fprintf(to, "camera %s ", event->camera);
    if (event->raised)
        fprintf(to, event->kind == ALERT_FLAPPING ? "flaps" : "is %s", kind);
    else if (end)
        fputs(end, to);
    else
        fprintf(to, "is no longer %s", kind);
    if (event->raised && event->why[0])
        fprintf(to, ": %s", event->why);
    if (!event->raised || event->interruptions > 0) {
        fputs(event->raised ? ", for " : ", after ", to);
        put_duration(to, (event->at_ms - event->since_ms) / 1000);
        if (event->interruptions > 0)
            fprintf(to, " with %d interruption%s", event->interruptions,
                    event->interruptions == 1 ? "" : "s");
    }
    fclose(to);
    text[ALERT_TEXT_MAX - 1] = 0;
}

static void time_text(int64_t ms, char to[LOG_TIME])
{
    log_time(to, ms * 1000000);
}

char *alert_event_json(const struct alert_event *event, const char *host)
{
    char id[ALERT_ID_MAX], text[ALERT_TEXT_MAX], at[LOG_TIME], since[LOG_TIME];
    alert_event_id(event, id);
    alert_event_text(event, text);
    time_text(event->at_ms, at);
    time_text(event->since_ms, since);
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:i, s:o, s:s, s:s}", "alert", id,
        "host", host, "camera", event->camera, "kind", alert_kind_name(event->kind), "state",
        event->raised ? "raised" : "cleared", "time", at, "since", since, "time_ms",
        (json_int_t)event->at_ms, "raised_ms", (json_int_t)event->raised_ms, "since_ms",
        (json_int_t)event->since_ms, "interruptions", event->interruptions, "availability_7d",
        event->availability < 0 ? json_null() : json_real(event->availability), "why", event->why,
        "text", text);
    char *line = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(json);
    return line;
}

static bool is_time(int64_t ms)
{
    return ms >= 0 && ms <= ALERT_MS_MAX;
}

int alert_event_parse(struct alert_event *ret, const char *line)
{
    json_int_t at, raised, since;
    const char *camera, *kind, *state, *why;
    json_t *availability;
    struct alert_event event = {0};
    json_t *json = json_loads(line, 0, NULL);
    if (!json)
        return -EINVAL;
    int rc = -EINVAL;
    if (json_unpack(json, "{s:s, s:s, s:s, s:I, s:I, s:I, s:i, s:o, s:s}", "camera", &camera,
                    "kind", &kind, "state", &state, "time_ms", &at, "raised_ms", &raised,
                    "since_ms", &since, "interruptions", &event.interruptions, "availability_7d",
                    &availability, "why", &why) == 0 &&
        alert_kind_find(kind) < ALERT_KINDS && strlen(camera) < sizeof event.camera &&
        is_time(at) && is_time(raised) && is_time(since)) {
        strcpy(event.camera, camera);
        event.kind = alert_kind_find(kind);
        event.raised = strcmp(state, "raised") == 0;
        event.at_ms = at;
        event.raised_ms = raised;
        event.since_ms = since;
        event.availability = json_is_number(availability) ? json_number_value(availability) : -1;
        log_scrub(event.why, sizeof event.why, why);
        *ret = event;
        rc = 0;
    }
    json_decref(json);
    return rc;
}

// --- the life of the outbox

void outbox_open(struct outbox *outbox)
{
    *outbox = (struct outbox){0};
    pthread_mutex_init(&outbox->lock, NULL);
    condition_init(&outbox->changed);
}

void outbox_close(struct outbox *outbox)
{
    free(outbox->signs);
    pthread_cond_destroy(&outbox->changed);
    pthread_mutex_destroy(&outbox->lock);
}

// --- the outbox, with its lock held

static void remove_entry(struct outbox *outbox, int i)
{
    memmove(&outbox->entry[i], &outbox->entry[i + 1],
            (size_t)(--outbox->n - i) * sizeof *outbox->entry);
}

static void count_lost(struct outbox *outbox, unsigned targets)
{
    for (int i = 0; i < TARGETS; i++)
        outbox->counts[i].lost += targets >> i & 1;
}

static struct outbox_entry *first_of(struct outbox *outbox, enum alert_target target)
{
    for (int i = 0; i < outbox->n; i++)
        if (outbox->entry[i].targets >> target & 1)
            return &outbox->entry[i];
    return NULL;
}

static void drop_target(struct outbox *outbox, int i, unsigned targets)
{
    outbox->entry[i].targets &= ~targets;
    if (outbox->entry[i].targets == 0)
        remove_entry(outbox, i);
}

// --- the outbox, without its lock held

void outbox_put(struct outbox *outbox, const struct alert_event *event, unsigned targets)
{
    if (targets == 0)
        return;
    pthread_mutex_lock(&outbox->lock);
    if (outbox->n == OUTBOX_MAX) {
        count_lost(outbox, outbox->entry[0].targets);
        remove_entry(outbox, 0);
    }
    outbox->entry[outbox->n++] = (struct outbox_entry){*event, targets};
    outbox->version++;
    pthread_cond_broadcast(&outbox->changed);
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_keep(struct outbox *outbox, unsigned targets)
{
    pthread_mutex_lock(&outbox->lock);
    for (int i = outbox->n - 1; i >= 0; i--) {
        count_lost(outbox, outbox->entry[i].targets & ~targets);
        drop_target(outbox, i, ~targets);
    }
    outbox->version++;
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_show(struct outbox *outbox, struct camera_sign *signs, int n)
{
    pthread_mutex_lock(&outbox->lock);
    free(outbox->signs);
    outbox->signs = signs;
    outbox->n_signs = n;
    outbox->signs_version++;
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_wake(struct outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    pthread_cond_broadcast(&outbox->changed);
    pthread_mutex_unlock(&outbox->lock);
}

int outbox_copy(struct outbox *outbox, struct outbox_entry to[OUTBOX_MAX], uint64_t *version)
{
    pthread_mutex_lock(&outbox->lock);
    const int n = outbox->n;
    memcpy(to, outbox->entry, (size_t)n * sizeof *to);
    *version = outbox->version;
    pthread_mutex_unlock(&outbox->lock);
    return n;
}

struct outbox_counts outbox_count(struct outbox *outbox, enum alert_target target, int *pending)
{
    pthread_mutex_lock(&outbox->lock);
    const struct outbox_counts counts = outbox->counts[target];
    *pending = 0;
    for (int i = 0; i < outbox->n; i++)
        *pending += outbox->entry[i].targets >> target & 1;
    pthread_mutex_unlock(&outbox->lock);
    return counts;
}

enum outbox_turn outbox_wait(struct outbox *outbox, enum alert_target target, int64_t from_ns,
                             int64_t until_ns, const atomic_bool *stop, struct alert_event *ret)
{
    enum outbox_turn turn = OUTBOX_TIME;
    pthread_mutex_lock(&outbox->lock);
    for (int64_t now; (now = monotonic_ns()) < until_ns && !atomic_load(stop);) {
        const struct outbox_entry *first = first_of(outbox, target);
        if (first && now >= from_ns) {
            *ret = first->event;
            turn = OUTBOX_EVENT;
            break;
        }
        const int64_t wake = first && from_ns < until_ns ? from_ns : until_ns;
        condition_wait(&outbox->changed, &outbox->lock, wake);
    }
    pthread_mutex_unlock(&outbox->lock);
    return atomic_load(stop) ? OUTBOX_STOP : turn;
}

void outbox_failed(struct outbox *outbox, enum alert_target target)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->counts[target].failed++;
    pthread_mutex_unlock(&outbox->lock);
}

static bool is_same(const struct alert_event *a, const struct alert_event *b)
{
    return a->kind == b->kind && a->raised == b->raised && a->raised_ms == b->raised_ms &&
           strcmp(a->camera, b->camera) == 0;
}

void outbox_done(struct outbox *outbox, enum alert_target target, const struct alert_event *event,
                 bool delivered)
{
    pthread_mutex_lock(&outbox->lock);
    int i = 0;
    while (i < outbox->n && !is_same(&outbox->entry[i].event, event))
        i++;
    if (delivered)
        outbox->counts[target].delivered++;
    else if (i < outbox->n) // else counted when it was dropped
        outbox->counts[target].lost++;
    if (i < outbox->n)
        drop_target(outbox, i, 1u << target);
    outbox->version++;
    pthread_mutex_unlock(&outbox->lock);
}

int outbox_signs(struct outbox *outbox, uint64_t *version, struct camera_sign **ret)
{
    int n = -1;
    pthread_mutex_lock(&outbox->lock);
    if (*version != outbox->signs_version) {
        const size_t bytes = (size_t)outbox->n_signs * sizeof **ret;
        if ((*ret = malloc(bytes + 1))) {
            n = outbox->n_signs;
            if (bytes)
                memcpy(*ret, outbox->signs, bytes);
            *version = outbox->signs_version;
        }
    }
    pthread_mutex_unlock(&outbox->lock);
    return n;
}
