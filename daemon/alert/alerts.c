#include "daemon/alert/alerts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/load.h"
#include "config/object.h"
#include "daemon/alert/delivery.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/process.h"

#define NAME "alerts"

enum { TICK_MS = 200, CLOSE_MS = 500 };

static const int64_t MS = 1000000, SUM_NS = 10 * INT64_C(1000000000),
                     SAVE_NS = 300 * INT64_C(1000000000), FORGET_NS = 600 * INT64_C(1000000000);

struct alerts {
    struct alerts_context context;
    struct config *config, *next; // the keys of `notify` only; next: prepared by a reload
    char host[65];
    uv_timer_t timer;
    struct alert_memory memory;
    struct outbox outbox;
    struct delivery *delivery[TARGETS];
    int64_t tick_ns; // the last one; CLOCK_MONOTONIC
    // Bits of targets whose delivery is ending; of targets whose delivery has to start.
    unsigned ending, due;
    // The file.
    char *path; // NULL: none
    struct work save;
    char *text;
    bool saving, changed;
    uint64_t saved_version; // of the outbox
    int64_t saved_ns;
    bool complained;
};

static unsigned targets_of(const struct notify_config *notify)
{
    return (notify->webhook ? 1u << TARGET_WEBHOOK : 0) |
           (notify->command.list.bytes > 0 ? 1u << TARGET_COMMAND : 0) |
           (notify->mqtt.server ? 1u << TARGET_MQTT : 0);
}

// --- the file

static int64_t clock_difference(void)
{
    return realtime_ns() - monotonic_ns();
}

static char *text_of(struct alerts *alerts, uint64_t *version)
{
    alerts->memory.n_entries = outbox_copy(&alerts->outbox, alerts->memory.entry, version);
    return alert_file_text(&alerts->memory, clock_difference());
}

static void complain(struct alerts *alerts, int rc)
{
    if (!alerts->complained)
        log_event(LOG_LEVEL_ERROR, "alerts and availability are not kept in %s: %s", alerts->path,
                  strerror(-rc));
    alerts->complained = true;
}

static void write_file(struct work *work)
{
    struct alerts *alerts = (struct alerts *)((char *)work - offsetof(struct alerts, save));
    const int rc = state_file_write(alerts->path, alerts->text, 0600);
    if (rc < 0)
        complain(alerts, rc);
}

static void file_was_written(struct work *work)
{
    struct alerts *alerts = (struct alerts *)((char *)work - offsetof(struct alerts, save));
    free(alerts->text);
    alerts->text = NULL;
    alerts->saving = false;
}

// Writes the file soon after an alert or an event has changed, else every SAVE_NS.
static void save(struct alerts *alerts, int64_t now_ns)
{
    struct outbox *outbox = &alerts->outbox;
    pthread_mutex_lock(&outbox->lock);
    const bool due = alerts->changed || outbox->version != alerts->saved_version ||
                     now_ns - alerts->saved_ns >= SAVE_NS;
    pthread_mutex_unlock(&outbox->lock);
    if (!alerts->path || !due || alerts->saving)
        return;
    alerts->text = text_of(alerts, &alerts->saved_version);
    alerts->saved_ns = now_ns;
    alerts->changed = false;
    if (!alerts->text) {
        complain(alerts, -ENOMEM);
        return;
    }
    alerts->saving = true;
    work_start(alerts->context.work, &alerts->save);
}

// --- a camera

static void put_why(struct alert_event *event, const struct camera *camera)
{
    const struct camera_description description = camera_report_describe(&camera->report);
    if (event->kind == ALERT_DOWN && event->raised)
        log_scrub(event->why, sizeof event->why, description.last_error.text);
    for (char *c = event->why; *c; c++)
        *c = *c & 0x80 ? '?' : *c; // the camera's text may be invalid UTF-8
}

static void tell(struct alerts *alerts, struct watched *watched, const struct camera *camera,
                 enum alert_kind kind)
{
    const struct alert *alert = &watched->judge.alert[kind];
    const int64_t ahead = clock_difference();
    const int64_t now_ms = realtime_ns() / MS;
    char text[ALERT_TEXT_MAX];
    if (alert->raised)
        watched->raised_ms[kind] = now_ms;
    struct alert_event event = {
        .kind = kind,
        .raised = alert->raised,
        .at_ms = now_ms,
        .raised_ms = watched->raised_ms[kind],
        .since_ms = (alert->bad_ns + ahead) / MS,
        .interruptions = alert->interruptions,
        .availability = camera->availability.share,
    };
    strcpy(event.camera, watched->name);
    put_why(&event, camera);
    alert_event_text(&event, text);
    log_event(alert->raised ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "alert: %s", text);
    outbox_put(&alerts->outbox, &event, targets_of(&alerts->config->notify));
    alerts->changed = true;
}

static void keep_availability(struct watched *watched, struct camera *camera, int state,
                              int64_t now_ns, int64_t passed_ns)
{
    const int64_t realtime = realtime_ns();
    if (state != CAMERA_ENDED && state != CAMERA_PAUSED)
        availability_add(&watched->availability, realtime, passed_ns, state == CAMERA_RUNNING);
    if (watched->summed_ns && now_ns - watched->summed_ns < SUM_NS && camera->availability.known_s)
        return;
    watched->summed_ns = now_ns;
    availability_sum(&watched->availability, realtime, &camera->availability);
}

// Updates the camera's sign. Returns true if it has changed.
static bool note_sign(struct watched *watched, const struct camera *camera, int state)
{
    const struct judge *judge = &watched->judge;
    struct camera_sign sign = {
        .analysed = camera_config_analyses(camera->config),
        .connected = state == CAMERA_RUNNING,
        .problem = judge->alert[ALERT_DOWN].raised || judge->alert[ALERT_FLAPPING].raised ||
                   judge->alert[ALERT_DAMAGED].raised,
    };
    strcpy(sign.name, watched->name);
    for (int i = 0; i < ALARMS; i++)
        sign.alarms |= judge->alert[ALERT_SCENE + i].raised ? 1u << i : 0;
    const bool same = watched->sign.gone == sign.gone && watched->sign.name[0] &&
                      watched->sign.analysed == sign.analysed &&
                      watched->sign.connected == sign.connected &&
                      watched->sign.problem == sign.problem && watched->sign.alarms == sign.alarms;
    watched->sign = sign;
    return !same;
}

static bool watch(struct alerts *alerts, struct watched *watched, struct camera *camera,
                  int64_t now_ns, int64_t passed_ns)
{
    const struct camera_report *report = &camera->report;
    const struct notify_config *notify = &alerts->config->notify;
    const struct judge_limits limits = {notify->grace.ns, notify->calm.ns};
    const struct judge_facts facts = {
        .now_ns = now_ns,
        .state = atomic_load(&report->state),
        .pictures = atomic_load(&report->pictures),
        .damaged = atomic_load(&report->flagged[COUNTED_DAMAGED]),
        .alarms = atomic_load(&report->scene.alarms),
        .media_timeout_ns = camera->config->media_timeout.ns,
        .connect_timeout_ns = camera->config->connect_timeout.ns,
    };
    watched->absent_ns = 0;
    keep_availability(watched, camera, (int)facts.state, now_ns, passed_ns);
    const unsigned changed = judge_step(&watched->judge, &facts, &limits);
    for (int i = 0; i < ALERT_KINDS; i++)
        if (changed >> i & 1)
            tell(alerts, watched, camera, (enum alert_kind)i);
    const unsigned before = camera->alerts;
    camera->alerts = 0;
    for (int i = 0; i < ALERT_KINDS; i++)
        camera->alerts |= watched->judge.alert[i].raised ? 1u << i : 0;
    alerts->changed |= camera->alerts != before; // including held alerts
    return note_sign(watched, camera, (int)facts.state);
}

// --- all cameras

// Keeps removed cameras for FORGET_NS: a user who edits the file may bring them back.
static bool forget(struct alerts *alerts, int64_t now_ns)
{
    struct alert_memory *memory = &alerts->memory;
    bool new = false;
    int kept = 0;
    for (int i = 0; i < memory->n; i++) {
        struct watched *watched = memory->list[i];
        if (watched->absent_ns != 0) {
            new |= !watched->sign.gone;
            strcpy(watched->sign.name, watched->name);
            watched->sign.gone = true;
        }
        if (watched->absent_ns == 0 || now_ns - watched->absent_ns < FORGET_NS) {
            memory->list[kept++] = watched;
            continue;
        }
        free(watched);
        new = true;
    }
    memory->n = kept;
    return new;
}

// Cameras from the file have no sign until a tick sees them.
static void show(struct alerts *alerts)
{
    const struct alert_memory *memory = &alerts->memory;
    struct camera_sign *signs = malloc((size_t)memory->n * sizeof *signs + 1);
    int n = 0;
    if (!signs)
        return; // the next change shows them
    for (int i = 0; i < memory->n; i++)
        if (memory->list[i]->sign.name[0])
            signs[n++] = memory->list[i]->sign;
    outbox_show(&alerts->outbox, signs, n);
}

// --- deliveries

// Starts the targets that are due. A target whose old delivery has not ended stays due, so that no
// event is delivered twice and none overtakes another.
static void start_deliveries(struct alerts *alerts)
{
    for (int i = 0; i < TARGETS; i++) {
        if (!(alerts->due >> i & 1) || alerts->delivery[i])
            continue;
        alerts->due &= ~(1u << i);
        const int rc = delivery_open(&alerts->delivery[i], (enum alert_target)i, alerts->config,
                                     &alerts->outbox, alerts->host);
        if (rc < 0)
            log_event(LOG_LEVEL_ERROR, "alerts are not delivered to the %s: %s",
                      alert_target_name((enum alert_target)i), strerror(-rc));
    }
}

static void open_deliveries(struct alerts *alerts)
{
    alerts->due = targets_of(&alerts->config->notify);
    outbox_keep(&alerts->outbox, alerts->due);
    show(alerts);
    start_deliveries(alerts);
}

static void end_deliveries(struct alerts *alerts)
{
    for (int i = 0; i < TARGETS; i++) {
        delivery_stop(alerts->delivery[i]);
        alerts->ending |= alerts->delivery[i] ? 1u << i : 0;
    }
}

// Closes deliveries that have ended, without waiting, and starts their successors.
static void close_deliveries(struct alerts *alerts)
{
    for (int i = 0; i < TARGETS; i++)
        if (alerts->ending >> i & 1 && delivery_close(alerts->delivery[i], 0)) {
            alerts->delivery[i] = NULL;
            alerts->ending &= ~(1u << i);
        }
    start_deliveries(alerts);
}

// --- all cameras, each tick

static void tick(uv_timer_t *timer)
{
    struct alerts *alerts = timer->data;
    const struct cameras *cameras = alerts->context.cameras;
    const int64_t now = monotonic_ns(), passed = alerts->tick_ns ? now - alerts->tick_ns : 0;
    bool new = false;
    alerts->tick_ns = now;
    for (int i = 0; i < alerts->memory.n; i++)
        if (alerts->memory.list[i]->absent_ns == 0)
            alerts->memory.list[i]->absent_ns = now; // until a camera is found
    for (int i = 0; i < cameras->n; i++) {
        struct watched *watched = alert_memory_get(&alerts->memory, cameras->list[i]->config->name);
        if (watched)
            new |= watch(alerts, watched, cameras->list[i], now, passed);
    }
    new |= forget(alerts, now);
    if (new && alerts->config->notify.mqtt.server)
        show(alerts);
    save(alerts, now);
    close_deliveries(alerts);
}

// --- reloads

int alerts_prepare(struct alerts *alerts, const struct config *config)
{
    config_free(alerts->next);
    alerts->next = config_copy_notify(config);
    return alerts->next ? 0 : -ENOMEM;
}

void alerts_commit(struct alerts *alerts)
{
    struct config *before = alerts->config;
    if (!alerts->next)
        return;
    if (config_same_notify(before, alerts->next)) {
        config_free(alerts->next);
    } else {
        alerts->config = alerts->next;
        config_free(before);
        end_deliveries(alerts);
        open_deliveries(alerts);
    }
    alerts->next = NULL;
}

// --- life

static void read_file(struct alerts *alerts)
{
    struct outbox *outbox = &alerts->outbox;
    const int rc =
        alert_file_read(&alerts->memory, alerts->path, monotonic_ns(), clock_difference());
    if (rc < 0 && rc != -ENOENT)
        log_event(LOG_LEVEL_WARNING, "alerts and availability are not read from %s: %s",
                  alerts->path, strerror(-rc));
    memcpy(outbox->entry, alerts->memory.entry,
           (size_t)alerts->memory.n_entries * sizeof *outbox->entry);
    outbox->n = alerts->memory.n_entries;
}

int alerts_open(struct alerts **ret, const struct alerts_context *context)
{
    struct alerts *alerts = calloc(1, sizeof *alerts);
    if (!alerts)
        return -ENOMEM;
    alerts->context = *context;
    alerts->config = config_copy_notify(context->config);
    alerts->context.config = NULL;
    alerts->save = (struct work){.run = write_file, .done = file_was_written};
    alerts->saved_ns = monotonic_ns();
    gethostname(alerts->host, sizeof alerts->host - 1);
    if (context->folder && asprintf(&alerts->path, "%s/" NAME, context->folder) < 0)
        alerts->path = NULL;
    if (!alerts->config || (context->folder && !alerts->path)) {
        config_free(alerts->config);
        free(alerts->path);
        free(alerts);
        return -ENOMEM;
    }
    outbox_open(&alerts->outbox);
    if (alerts->path)
        read_file(alerts);
    uv_timer_init(context->loop, &alerts->timer);
    alerts->timer.data = alerts;
    uv_timer_start(&alerts->timer, tick, TICK_MS, TICK_MS);
    open_deliveries(alerts);
    *ret = alerts;
    return 0;
}

void alerts_stop(struct alerts *alerts)
{
    if (!alerts)
        return;
    end_deliveries(alerts);
    uv_close((uv_handle_t *)&alerts->timer, NULL);
}

void alerts_close(struct alerts *alerts)
{
    uint64_t version;
    bool joined = true;
    if (!alerts)
        return;
    const int64_t until_ns = monotonic_ns() + CLOSE_MS * MS;
    for (int i = 0; i < TARGETS; i++)
        joined &= delivery_close(alerts->delivery[i], until_ns);
    char *text = alerts->path ? text_of(alerts, &version) : NULL;
    const int rc = text ? state_file_write(alerts->path, text, 0600) : 0;
    if (rc < 0)
        complain(alerts, rc);
    free(text);
    if (!joined)
        return; // a thread may still use all of it
    outbox_close(&alerts->outbox);
    alert_memory_free(&alerts->memory);
    config_free(alerts->config);
    config_free(alerts->next);
    free(alerts->path);
    free(alerts);
}

// --- for metrics

bool alerts_has_target(const struct alerts *alerts, enum alert_target target)
{
    return targets_of(&alerts->config->notify) >> target & 1;
}

const char *alert_target_name(enum alert_target target)
{
    static const char *const names[TARGETS] = {
        [TARGET_WEBHOOK] = "webhook",
        [TARGET_COMMAND] = "command",
        [TARGET_MQTT] = "mqtt",
    };
    return names[target];
}

struct outbox_counts alerts_count(struct alerts *alerts, enum alert_target target, int *pending)
{
    return outbox_count(&alerts->outbox, target, pending);
}
