#include "daemon/supervisor/cameras.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/work/work.h"

// --- the collector: a batch's thread

struct collector {
    struct output *output;
    struct event_queue *events;
    pthread_t thread;
    _Atomic bool ended;
};

static void *collect(void *opaque)
{
    struct collector *collector = opaque;
    struct batch_grant grant;
    pthread_setname_np(pthread_self(), "batch");
    while (batch_take(collector->output->batch, &grant) == 0) {
        if (grant.member)
            work_resume(&grant);
        else
            event_post(collector->events, &collector->output->ready);
    }
    atomic_store(&collector->ended, true);
    return NULL;
}

static int start_collector(struct output *output, struct event_queue *events)
{
    struct collector *collector = malloc(sizeof *collector);
    if (!collector)
        return -ENOMEM;
    *collector = (struct collector){.output = output, .events = events};
    int rc = -pthread_create(&collector->thread, NULL, collect, collector);
    if (rc < 0)
        free(collector);
    else
        output->collector = collector;
    return rc;
}

static void stop_collector(struct output *batch)
{
    if (!batch->collector)
        return;
    batch_stop(batch->batch);
    pthread_join(batch->collector->thread, NULL);
    free(batch->collector);
    batch->collector = NULL;
}

// --- batches

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
        int rc = start_collector(batch, events);
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

// Polled: the collector may be in a driver or unmap memory, so the loop thread does not wait.
static bool is_over(struct output *batch)
{
    if (batch->subscribers > 0 || output_is_open(batch))
        return false;
    batch->finished = true; // no share joins it any more
    batch_stop(batch->batch);
    if (batch->collector && !atomic_load(&batch->collector->ended))
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
