#include "daemon/scene/scene_report.h"

void scene_report_open(struct scene_report *report)
{
    pthread_mutex_init(&report->lock, NULL);
}

void scene_report_close(struct scene_report *report)
{
    pthread_mutex_destroy(&report->lock);
}

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
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
    pthread_mutex_unlock(&report->lock);
}

void scene_report_end(struct scene_report *report)
{
    atomic_store(&report->alarms, 0);
    pthread_mutex_lock(&report->lock);
    report->known = false;
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
