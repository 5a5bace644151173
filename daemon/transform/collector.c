#include "daemon/transform/collector.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/transform/transform.h"

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
        if (grant.moved)
            pool_close_unused_regions(collector->output->pool);
        if (grant.member)
            transform_resume(&grant);
        else
            event_post(collector->events, &collector->output->ready);
    }
    atomic_store(&collector->ended, true);
    return NULL;
}

int collector_open(struct collector **ret, struct output *output, struct event_queue *events)
{
    struct collector *collector = malloc(sizeof *collector);
    if (!collector)
        return -ENOMEM;
    *collector = (struct collector){.output = output, .events = events};
    int rc = pthread_create(&collector->thread, NULL, collect, collector);
    if (rc != 0) {
        free(collector);
        return -rc;
    }
    *ret = collector;
    return 0;
}

bool collector_stop(struct collector *collector)
{
    if (!collector)
        return true;
    batch_stop(collector->output->batch);
    return atomic_load(&collector->ended);
}

void collector_close(struct collector *collector)
{
    if (!collector)
        return;
    collector_stop(collector);
    pthread_join(collector->thread, NULL);
    free(collector);
}
