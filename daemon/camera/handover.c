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

bool handover_waits(const struct handover *handover)
{
    return atomic_load(&handover->waits);
}

void handover_take(struct handover *handover, struct outputs *ret)
{
    pthread_mutex_lock(&handover->lock);
    handover->now = handover->next;
    atomic_store(&handover->waits, false);
    *ret = handover->now;
    pthread_mutex_unlock(&handover->lock);
}
