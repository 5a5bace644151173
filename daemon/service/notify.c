#include "daemon/service/notify.h"

#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

enum { LOOK_MS = 1000 }; // between checks of the cameras, or less as the watchdog requires

static void tell_status(struct notify *notify, const struct health *health)
{
    if (health->running != notify->running || health->cameras != notify->cameras)
        sd_notifyf(0, "STATUS=%d of %d cameras running", health->running, health->cameras);
    notify->running = health->running;
    notify->cameras = health->cameras;
}

static void tell_stuck(struct notify *notify, const struct health *health)
{
    bool silent = health->stuck;
    if (silent && !notify->silent) {
        log_camera(health->stuck);
        log_event(LOG_LEVEL_ERROR, "stuck while %s: the watchdog gets no more signs of life",
                  health->step);
        log_camera(NULL);
    } else if (!silent && notify->silent) {
        log_event(LOG_LEVEL_WARNING, "no camera is stuck any more");
    }
    notify->silent = silent;
}

static void look(uv_timer_t *timer)
{
    struct notify *notify = timer->data;
    struct health health = {0};
    notify->look(notify->opaque, (int64_t)notify->watchdog_us * 1000, &health);
    if (!notify->ready && health.started == health.cameras) {
        sd_notify(0, "READY=1");
        notify->ready = true;
    }
    tell_status(notify, &health);
    if (notify->watchdog_us == 0)
        return;
    tell_stuck(notify, &health);
    if (!notify->silent)
        sd_notify(0, "WATCHDOG=1");
}

void notify_open(struct notify *notify, uv_loop_t *loop, health_fn *health, void *opaque)
{
    *notify = (struct notify){.look = health, .opaque = opaque, .cameras = -1};
    uv_timer_init(loop, &notify->timer);
    notify->timer.data = notify;
    if (!getenv("NOTIFY_SOCKET"))
        return;
    if (sd_watchdog_enabled(0, &notify->watchdog_us) <= 0)
        notify->watchdog_us = 0;
    uint64_t half_ms = notify->watchdog_us / 2000;
    uint64_t ms = half_ms > 0 && half_ms < LOOK_MS ? half_ms : LOOK_MS;
    uv_timer_start(&notify->timer, look, 0, ms);
}

int64_t notify_patience_ns(const struct notify *notify)
{
    return notify->watchdog_us ? (int64_t)notify->watchdog_us * 1000 : HEALTH_PATIENCE_NS;
}

void notify_reloading(void)
{
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(monotonic_ns() / 1000));
}

void notify_reloaded(struct notify *notify)
{
    notify->ready = false;
    look(&notify->timer);
}

// A daemon that ends before it was ready never becomes ready.
void notify_stopping(struct notify *notify)
{
    notify->ready = true;
    sd_notify(0, "STOPPING=1");
}

void notify_close(struct notify *notify)
{
    uv_close((uv_handle_t *)&notify->timer, NULL);
}
