#include "daemon/alert/alerts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TITLE "framed alerts 1"

enum { LINE_MAX_BYTES = 8192 };

static const int64_t MS = 1000000;

void alert_memory_free(struct alert_memory *memory)
{
    for (int i = 0; i < memory->n; i++)
        free(memory->list[i]);
    free(memory->list);
    *memory = (struct alert_memory){0};
}

struct watched *alert_memory_get(struct alert_memory *memory, const char *name)
{
    int low = 0, high = memory->n;
    while (low < high) {
        const int middle = (low + high) / 2, order = strcmp(memory->list[middle]->name, name);
        if (order == 0)
            return memory->list[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (memory->n == WATCHED_MAX)
        return NULL;
    struct watched **list =
        realloc(memory->list, (size_t)(memory->n + 1) * sizeof(struct watched *));
    if (!list)
        return NULL;
    memory->list = list;
    struct watched *watched = calloc(1, sizeof *watched);
    if (!watched)
        return NULL;
    snprintf(watched->name, sizeof watched->name, "%s", name);
    judge_open(&watched->judge);
    memmove(list + low + 1, list + low, (size_t)(memory->n - low) * sizeof *list);
    memory->n++;
    return list[low] = watched;
}

// --- reading

// "alert KIND RAISED AGAIN RAISED_MS CLEARED_MS BAD_MS INTERRUPTIONS", times since 1970; RAISED is
// 2 for an alert that is held.
static void read_alert(struct watched *watched, const char *line, int64_t now_ns, int64_t ahead_ns)
{
    char name[16];
    int raised, again, interruptions;
    int64_t raised_ms, cleared_ms, bad_ms;
    if (sscanf(line, "alert %15s %1d %1d %15" SCNd64 " %15" SCNd64 " %15" SCNd64 " %9d", name,
               &raised, &again, &raised_ms, &cleared_ms, &bad_ms, &interruptions) != 7)
        return;
    const enum alert_kind kind = alert_kind_find(name);
    if (kind == ALERT_KINDS || raised_ms < 0 || raised_ms > ALERT_MS_MAX || bad_ms < 0 ||
        bad_ms > ALERT_MS_MAX || cleared_ms > ALERT_MS_MAX || interruptions < 0)
        return;
    struct alert *alert = &watched->judge.alert[kind];
    watched->raised_ms[kind] = raised_ms;
    alert->raised = raised != 0;
    alert->held = raised == 2;
    alert->again = again != 0;
    alert->raised_ns = raised_ms * MS - ahead_ns;
    alert->bad_ns = bad_ms * MS - ahead_ns;
    if (cleared_ms >= 0)
        alert->cleared_ns = cleared_ms * MS - ahead_ns;
    // A clock that was set back must not move an alert into the future.
    alert->raised_ns = alert->raised_ns < now_ns ? alert->raised_ns : now_ns;
    alert->cleared_ns = alert->cleared_ns < now_ns ? alert->cleared_ns : now_ns;
    alert->bad_ns = alert->bad_ns < now_ns ? alert->bad_ns : now_ns;
    alert->interruptions = interruptions;
}

// "hours FIRST UP/KNOWNxTIMES ...", in milliseconds.
static void read_hours(struct availability *availability, const char *line)
{
    int64_t hour;
    int bytes = 0;
    if (sscanf(line, "hours %9" SCNd64 "%n", &hour, &bytes) != 1)
        return;
    struct availability_hour bucket;
    for (int times; sscanf(line += bytes, " %8" SCNu32 "/%8" SCNu32 "x%4d%n", &bucket.up_ms,
                           &bucket.known_ms, &times, &bytes) == 3;)
        for (int i = 0; i < times && i < AVAILABILITY_HOURS; i++)
            availability_set(availability, hour++, bucket);
}

// "event TARGETS JSON".
static void read_event(struct alert_memory *memory, const char *line)
{
    struct outbox_entry entry;
    int bytes = 0;
    if (memory->n_entries == OUTBOX_MAX ||
        sscanf(line, "event %2x %n", &entry.targets, &bytes) != 1 || bytes == 0 ||
        alert_event_parse(&entry.event, line + bytes) < 0)
        return;
    entry.targets &= (1u << TARGETS) - 1;
    if (entry.targets)
        memory->entry[memory->n_entries++] = entry;
}

static bool is_name(const char *name)
{
    const size_t n = strspn(name, NAME_CHARACTERS);
    return n > 0 && name[n] == 0;
}

int alert_file_read(struct alert_memory *ret, const char *path, int64_t now_ns, int64_t ahead_ns)
{
    char line[LINE_MAX_BYTES], name[24];
    struct watched *watched = NULL;
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    int rc = 0;
    bool good = fgets(line, sizeof line, file) && strcmp(line, TITLE "\n") == 0;
    while (good && rc == 0 && fgets(line, sizeof line, file)) {
        if (sscanf(line, "camera %23s", name) == 1 && is_name(name)) {
            watched = alert_memory_get(ret, name);
            rc = watched || ret->n == WATCHED_MAX ? 0 : -ENOMEM;
        } else if (strncmp(line, "event ", 6) == 0) {
            read_event(ret, line);
        } else if (watched) {
            read_alert(watched, line, now_ns, ahead_ns);
            read_hours(&watched->availability, line);
        }
    }
    fclose(file);
    return rc;
}

// --- writing

static int64_t wall_ms(int64_t ns, int64_t ahead_ns)
{
    return ns + ahead_ns > 0 ? (ns + ahead_ns) / MS : 0;
}

static void write_alerts(FILE *to, const struct watched *watched, int64_t ahead_ns)
{
    for (int i = 0; i < ALERT_KINDS; i++) {
        const struct alert *alert = &watched->judge.alert[i];
        const bool cleared = alert->cleared_ns > INT64_MIN / 2;
        if (!alert->raised && !cleared && alert->raised_ns <= INT64_MIN / 2)
            continue;
        fprintf(to, "alert %s %d %d %" PRId64 " %" PRId64 " %" PRId64 " %d\n",
                alert_kind_name((enum alert_kind)i), alert->raised + alert->held, alert->again,
                watched->raised_ms[i], cleared ? wall_ms(alert->cleared_ns, ahead_ns) : -1,
                wall_ms(alert->bad_ns, ahead_ns), alert->interruptions);
    }
}

// Writes a run of equal hours once, with its length: a good camera has equal hours only.
static void write_hours(FILE *to, const struct availability *availability)
{
    const struct availability_hour *bucket, none = {0};
    int64_t first = availability->hour - AVAILABILITY_HOURS + 1;
    for (first = first < 0 ? 0 : first; first < availability->hour; first++)
        if ((bucket = availability_hour(availability, first)) && bucket->known_ms)
            break;
    fprintf(to, "hours %" PRId64, first);
    for (int64_t hour = first, next; hour <= availability->hour; hour = next) {
        bucket = availability_hour(availability, hour);
        bucket = bucket ? bucket : &none;
        for (next = hour + 1; next <= availability->hour; next++) {
            const struct availability_hour *other = availability_hour(availability, next);
            if (!other || memcmp(other, bucket, sizeof *other) != 0)
                break;
        }
        fprintf(to, " %" PRIu32 "/%" PRIu32 "x%" PRId64, bucket->up_ms, bucket->known_ms,
                next - hour);
    }
    fputc('\n', to);
}

char *alert_file_text(const struct alert_memory *memory, int64_t ahead_ns)
{
    char *text = NULL;
    size_t bytes;
    bool failed = false;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        return NULL;
    fputs(TITLE "\n", to);
    for (int i = 0; i < memory->n; i++) {
        fprintf(to, "camera %s\n", memory->list[i]->name);
        write_alerts(to, memory->list[i], ahead_ns);
        write_hours(to, &memory->list[i]->availability);
    }
    for (int i = 0; i < memory->n_entries; i++) {
        char *json = alert_event_json(&memory->entry[i].event, "");
        failed |= !json;
        if (json)
            fprintf(to, "event %x %s\n", memory->entry[i].targets, json);
        free(json);
    }
    failed |= ferror(to) != 0;
    if (fclose(to) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}
