#include "daemon/alert/delivery.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "config/load.h"
#include "config/object.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"

static const int64_t MS = 1000000, DAY_MS = 86400000;

enum { KEEP_MS = 200, FIRST_PAUSE_MS = 1000, LONGEST_PAUSE_MS = 60000 };

struct delivery {
    enum alert_target target;
    const struct delivery_driver *driver;
    struct delivery_context context;
    struct config *config; // its own copy
    atomic_bool stop;
    int stop_fd;
    pthread_t thread;
    sem_t ended; // posted by the thread at its end
    // Used by the thread only:
    void *state;
    int64_t next_ns; // earliest time of the next try
    int pause_ms;
    bool failing; // already logged
};

static void give_up(struct delivery *d, const struct alert_event *event, const char *why)
{
    char id[ALERT_ID_MAX];
    alert_event_id(event, id);
    log_event(LOG_LEVEL_ERROR, "camera=%s alert %s is not delivered to %s: %s", event->camera, id,
              d->driver->name, why);
    outbox_done(d->context.outbox, d->target, event, false);
}

static void try_later(struct delivery *d, const struct alert_event *event, const char *why)
{
    outbox_failed(d->context.outbox, d->target);
    if (!d->failing)
        log_event(LOG_LEVEL_WARNING, "camera=%s alert not delivered to %s yet: %s", event->camera,
                  d->driver->name, why);
    d->failing = true;
    d->pause_ms = d->pause_ms == 0                     ? FIRST_PAUSE_MS
                  : 2 * d->pause_ms > LONGEST_PAUSE_MS ? LONGEST_PAUSE_MS
                                                       : 2 * d->pause_ms;
    d->next_ns = monotonic_ns() + d->pause_ms * MS;
}

static void deliver(struct delivery *d, const struct alert_event *event)
{
    char why[DELIVERY_WHY_MAX] = "";
    char *json = alert_event_json(event, d->context.host);
    int rc = json ? d->driver->deliver(d->state, event, json, why, sizeof why) : -ENOMEM;
    free(json);
    if (rc == -ECANCELED)
        return;
    if (rc < 0 && !why[0])
        snprintf(why, sizeof why, "%s", strerror(-rc));
    const bool old = realtime_ns() / MS - event->at_ms > DAY_MS;
    if (rc == -EINVAL || (rc < 0 && old)) {
        give_up(d, event, why);
    } else if (rc < 0) {
        try_later(d, event, why);
        return;
    } else {
        if (d->failing)
            log_event(LOG_LEVEL_INFO, "alerts are delivered to %s again", d->driver->name);
        outbox_done(d->context.outbox, d->target, event, true);
    }
    d->failing = false;
    d->pause_ms = 0;
    d->next_ns = 0;
}

static void deliver_events(struct delivery *d)
{
    struct alert_event event;
    const bool keeps = d->driver->keep;
    if (d->driver->open(&d->state, &d->context) < 0) {
        log_event(LOG_LEVEL_ERROR, "alerts are not delivered to %s: %s", d->driver->name,
                  strerror(ENOMEM));
        return;
    }
    for (;;) {
        const int64_t until = keeps ? monotonic_ns() + MS : INT64_MAX;
        const enum outbox_turn turn =
            outbox_wait(d->context.outbox, d->target, d->next_ns, until, &d->stop, &event);
        if (turn == OUTBOX_STOP)
            break;
        if (turn == OUTBOX_EVENT)
            deliver(d, &event);
        else if (keeps)
            d->driver->keep(d->state, KEEP_MS);
    }
    d->driver->close(d->state);
}

static void *run(void *opaque)
{
    struct delivery *d = opaque;
    pthread_setname_np(pthread_self(), "alerts");
    deliver_events(d);
    sem_post(&d->ended);
    return NULL;
}

int delivery_open(struct delivery **ret, enum alert_target target, const struct config *config,
                  struct outbox *outbox, const char *host)
{
    static const struct delivery_driver *const drivers[TARGETS] = {
        [TARGET_WEBHOOK] = &webhook_driver,
        [TARGET_COMMAND] = &command_driver,
        [TARGET_MQTT] = &mqtt_driver,
    };
    struct delivery *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->target = target;
    d->driver = drivers[target];
    d->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = d->stop_fd < 0 ? -errno : 0;
    d->config = config_copy_notify(config);
    d->context = (struct delivery_context){d->config, outbox, host, &d->stop, d->stop_fd};
    sem_init(&d->ended, 0, 0);
    if (rc == 0)
        rc = d->config ? -pthread_create(&d->thread, NULL, run, d) : -ENOMEM;
    if (rc == 0) {
        *ret = d;
        return 0;
    }
    if (d->stop_fd >= 0)
        close(d->stop_fd);
    config_free(d->config);
    free(d);
    return rc;
}

void delivery_stop(struct delivery *d)
{
    const uint64_t one = 1;
    if (!d)
        return;
    atomic_store(&d->stop, true);
    if (write(d->stop_fd, &one, sizeof one) < 0)
        log_event(LOG_LEVEL_ERROR, "eventfd: %s", strerror(errno)); // can only be a bug
    outbox_wake(d->context.outbox);
}

bool delivery_close(struct delivery *d, int64_t until_ns)
{
    if (!d)
        return true;
    const struct timespec until = {.tv_sec = until_ns / 1000000000,
                                   .tv_nsec = until_ns % 1000000000};
    int rc;
    do
        rc = sem_clockwait(&d->ended, CLOCK_MONOTONIC, &until);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return false;
    pthread_join(d->thread, NULL); // sanitizers support it, unlike pthread_clockjoin_np
    sem_destroy(&d->ended);
    close(d->stop_fd);
    config_free(d->config);
    free(d);
    return true;
}
