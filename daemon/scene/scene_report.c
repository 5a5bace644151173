#include "daemon/scene/scene_report.h"

#include <errno.h>
#include <stdlib.h>

void scene_report_open(struct scene_report *report)
{
    pthread_mutex_init(&report->lock, NULL);
}

void scene_report_close(struct scene_report *report)
{
    free(report->waiting);
    pthread_mutex_destroy(&report->lock);
}

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

// Under lock.
static void keep_waiting(struct scene_report *report, const struct scene_record *record)
{
    if (report->n == SCENE_RECORDS_MAX) {
        report->first = (report->first + 1) % SCENE_RECORDS_MAX;
        report->n--;
        count(&report->records_dropped);
    }
    report->waiting[(report->first + report->n++) % SCENE_RECORDS_MAX] = *record;
    event_post(report->events, report->ready);
}

void scene_report_put(struct scene_report *report, const struct scene_record *record)
{
    count(&report->analysed);
    if (record->motion.moving)
        count(&report->moving);
    for (int i = 0; i < ALARMS; i++)
        if (record->raised >> i & 1)
            count(&report->raised[i]);
    atomic_store(&report->alarms, record->alarms);
    pthread_mutex_lock(&report->lock);
    report->known = true;
    report->last = *record;
    if (report->ready)
        keep_waiting(report, record);
    pthread_mutex_unlock(&report->lock);
}

bool scene_report_last(struct scene_report *report, struct scene_record *ret)
{
    pthread_mutex_lock(&report->lock);
    const bool known = report->known;
    if (known)
        *ret = report->last;
    pthread_mutex_unlock(&report->lock);
    return known;
}

int scene_report_watch(struct scene_report *report, struct event_queue *events, struct event *ready)
{
    struct scene_record *waiting =
        ready ? calloc(SCENE_RECORDS_MAX, sizeof *report->waiting) : NULL;
    if (ready && !waiting)
        return -ENOMEM;
    pthread_mutex_lock(&report->lock);
    free(report->waiting);
    report->waiting = waiting;
    report->first = report->n = 0;
    report->events = events;
    report->ready = ready;
    pthread_mutex_unlock(&report->lock);
    return 0;
}

bool scene_report_take(struct scene_report *report, struct scene_record *ret)
{
    pthread_mutex_lock(&report->lock);
    const bool any = report->n > 0;
    if (any) {
        *ret = report->waiting[report->first];
        report->first = (report->first + 1) % SCENE_RECORDS_MAX;
        report->n--;
    }
    pthread_mutex_unlock(&report->lock);
    return any;
}
