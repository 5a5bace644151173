#include "daemon/camera/camera_changes.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

void camera_changes_open(struct camera_changes *changes)
{
    pthread_mutex_init(&changes->lock, NULL);
}

void camera_changes_close(struct camera_changes *changes)
{
    event_cancel(&changes->posted);
    pthread_mutex_destroy(&changes->lock);
}

static void add(struct camera_changes *changes, struct camera_change *change)
{
    change->realtime_ns = realtime_ns();
    pthread_mutex_lock(&changes->lock);
    changes->list[changes->added++ % CAMERA_CHANGES_MAX] = *change;
    if (changes->added - changes->taken > CAMERA_CHANGES_MAX)
        changes->taken = changes->added - CAMERA_CHANGES_MAX;
    pthread_mutex_unlock(&changes->lock);
    if (changes->events)
        event_post(changes->events, &changes->posted);
}

void camera_changes_state(struct camera_changes *changes, enum camera_state state, const char *why)
{
    struct camera_change change = {.state = state};
    const int64_t now = monotonic_ns();
    if (why)
        log_scrub(change.why, sizeof change.why, why);
    if (state == CAMERA_CONNECTING ||
        (state == changes->state && (!why || strcmp(change.why, changes->why) == 0)))
        return;
    if (state == CAMERA_RUNNING && changes->down_ns > 0)
        change.outage_ns = now - changes->down_ns;
    if (state != CAMERA_RETRYING)
        changes->down_ns = 0;
    else if (changes->down_ns == 0)
        changes->down_ns = now;
    changes->state = state;
    memcpy(changes->why, change.why, sizeof changes->why);
    add(changes, &change);
}

void camera_changes_alarms(struct camera_changes *changes, unsigned alarms)
{
    const unsigned differ = alarms ^ changes->alarms;
    changes->alarms = alarms;
    for (int i = 0; differ >> i; i++)
        if (differ >> i & 1)
            add(changes, &(struct camera_change){
                             .is_alarm = true, .alarm = (enum alarm)i, .raised = alarms >> i & 1});
}

bool camera_changes_take(struct camera_changes *changes, struct camera_change *ret)
{
    pthread_mutex_lock(&changes->lock);
    const bool any = changes->taken < changes->added;
    if (any)
        *ret = changes->list[changes->taken++ % CAMERA_CHANGES_MAX];
    pthread_mutex_unlock(&changes->lock);
    return any;
}
