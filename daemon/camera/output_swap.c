#include "daemon/camera/output_swap.h"

void output_swap_open(struct output_swap *handover, const struct outputs *now)
{
    *handover = (struct output_swap){.now = *now};
    pthread_mutex_init(&handover->lock, NULL);
}

void output_swap_close(struct output_swap *handover)
{
    pthread_mutex_destroy(&handover->lock);
}

// What was given and never taken, the camera has not seen.
static void leave_unseen(struct output_swap *handover, const struct outputs *given)
{
    for (int i = 0; i < handover->next.n; i++) {
        struct output *output = handover->next.list[i];
        if (!outputs_have(&handover->now, output) && !outputs_have(given, output))
            atomic_store(&output->left, true);
    }
}

void output_swap_give(struct output_swap *handover, const struct outputs *given)
{
    pthread_mutex_lock(&handover->lock);
    if (atomic_load(&handover->waits))
        leave_unseen(handover, given);
    handover->next = *given;
    atomic_store(&handover->waits, true);
    pthread_mutex_unlock(&handover->lock);
}

static void take(struct output_swap *handover)
{
    pthread_mutex_lock(&handover->lock);
    handover->now = handover->next;
    atomic_store(&handover->waits, false);
    pthread_mutex_unlock(&handover->lock);
}

static void join(struct output *output, const struct device_lease *lease)
{
    pool_set_backend(output->pool, lease->driver, lease->backend);
}

bool output_swap_follow(struct output_swap *handover, struct transform *pipeline,
                        const struct device_lease *lease)
{
    if (!atomic_load(&handover->waits))
        return false;
    const struct outputs before = handover->now, *now = &handover->now;
    take(handover);
    transform_change(pipeline, now);
    for (int i = 0; lease->device && i < now->n; i++)
        if (!outputs_have(&before, now->list[i]))
            join(now->list[i], lease);
    for (int i = 0; i < before.n; i++) {
        if (outputs_have(now, before.list[i]))
            continue;
        pool_clear_backend(before.list[i]->pool);
        atomic_store(&before.list[i]->left, true);
    }
    return true;
}

void output_swap_join(struct output_swap *handover, const struct device_lease *lease)
{
    for (int i = 0; i < handover->now.n; i++)
        join(handover->now.list[i], lease);
}

void output_swap_leave(struct output_swap *handover)
{
    for (int i = 0; i < handover->now.n; i++)
        pool_clear_backend(handover->now.list[i]->pool);
}
