#include "daemon/supervisor/cameras.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/work/work.h"

bool batch_has_cameras(const struct output *batch, struct camera *const cameras[], int n)
{
    for (int i = 0; i < n; i++)
        if (subscriptions_fill(cameras[i]->subscriptions, batch))
            return true;
    return false;
}

bool batch_is_filled(const struct output *batch, struct camera *const cameras[], int n)
{
    for (int i = 0; i < n; i++)
        if (!cameras[i]->joined && subscriptions_fill(cameras[i]->subscriptions, batch))
            return true;
    return false;
}

void batches_start(struct output *batches, struct camera *const cameras[], int n,
                   struct event_queue *events)
{
    for (struct output *batch = batches; batch; batch = batch->next) {
        if (batch->collector || batch->finished || !batch_is_filled(batch, cameras, n))
            continue;
        int rc = collector_open(&batch->collector, batch, events);
        if (rc < 0)
            log_event(LOG_LEVEL_ERROR, "output=%s no thread: %s", batch->config->name,
                      strerror(-rc));
    }
}

void batches_finish(struct output *batches, struct camera *const cameras[], int n,
                    const struct camera *ended, int grace_ms)
{
    for (int i = 0; i < ended->subscriptions->n; i++)
        if (ended->subscriptions->list[i].output->parent)
            batch_end(&ended->subscriptions->list[i].output->share);
    for (struct output *batch = batches; batch; batch = batch->next)
        if (subscriptions_fill(ended->subscriptions, batch) && !batch_is_filled(batch, cameras, n))
            output_finish(batch, grace_ms);
}

static void stop_collector(struct output *batch)
{
    collector_close(batch->collector);
    batch->collector = NULL;
}

// Polled: the collector may be in a driver or unmap memory, so the loop thread does not wait.
static bool is_over(struct output *batch)
{
    if (batch->subscribers > 0 || output_is_open(batch))
        return false;
    batch->finished = true; // no share joins it any more
    if (!collector_stop(batch->collector))
        return false;
    stop_collector(batch);
    return true;
}

void batches_forget(struct output **link)
{
    while (*link) {
        struct output *batch = *link;
        if (!is_over(batch)) {
            link = &batch->next;
            continue;
        }
        *link = batch->next;
        output_close(batch);
    }
}

void batches_close(struct output **link)
{
    while (*link) {
        struct output *batch = *link;
        *link = batch->next;
        output_close(batch);
    }
}

void batches_stop(struct output *batches)
{
    for (struct output *batch = batches; batch; batch = batch->next)
        stop_collector(batch);
}
