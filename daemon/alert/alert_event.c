#include "daemon/alert/alert_event.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"

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
