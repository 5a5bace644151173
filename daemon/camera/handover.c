#include "daemon/camera/handover.h"

void handover_open(struct handover *handover, const struct outputs *now)
{
    *handover = (struct handover){.now = *now};
    pthread_mutex_init(&handover->lock, NULL);
}

void handover_close(struct handover *handover)
{
    pthread_mutex_destroy(&handover->lock);
}

// What was given and never taken, the camera has not seen.
static void leave_unseen(struct handover *handover, const struct outputs *given)
{
    for (int i = 0; i < handover->next.n; i++) {
        struct output *output = handover->next.list[i];
        if (!outputs_have(&handover->now, output) && !outputs_have(given, output))
            atomic_store(&output->left, true);
    }
}

void handover_give(struct handover *handover, const struct outputs *given)
{
    pthread_mutex_lock(&handover->lock);
    if (atomic_load(&handover->waits))
        leave_unseen(handover, given);
    handover->next = *given;
    atomic_store(&handover->waits, true);
    pthread_mutex_unlock(&handover->lock);
}

static void take(struct handover *handover)
{
    pthread_mutex_lock(&handover->lock);
    handover->now = handover->next;
    atomic_store(&handover->waits, false);
    pthread_mutex_unlock(&handover->lock);
}

static void join(struct output *output, const struct engine_use *use)
{
    slots_join(output->slots, use->driver, use->backend);
}

bool handover_follow(struct handover *handover, struct pipeline *pipeline,
                     const struct engine_use *use)
{
    if (!atomic_load(&handover->waits))
        return false;
    const struct outputs before = handover->now, *now = &handover->now;
    take(handover);
    pipeline_change(pipeline, now);
    for (int i = 0; use->side && i < now->n; i++)
        if (!outputs_have(&before, now->list[i]))
            join(now->list[i], use);
    for (int i = 0; i < before.n; i++) {
        if (outputs_have(now, before.list[i]))
            continue;
        slots_leave(before.list[i]->slots);
        atomic_store(&before.list[i]->left, true);
    }
    return true;
}

void handover_join(struct handover *handover, const struct engine_use *use)
{
    for (int i = 0; i < handover->now.n; i++)
        join(handover->now.list[i], use);
}

void handover_leave(struct handover *handover)
{
    for (int i = 0; i < handover->now.n; i++)
        slots_leave(handover->now.list[i]->slots);
}
