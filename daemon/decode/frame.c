#include "daemon/decode/frame.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/base/clock.h"

struct shared {
    _Atomic int owners;
    void *owner;
    void (*release)(void *owner);
};

static void release_shared(void *opaque)
{
    struct shared *shared = opaque;
    if (atomic_fetch_sub(&shared->owners, 1) > 1)
        return;
    if (shared->release)
        shared->release(shared->owner);
    free(shared);
}

int frame_share(struct frame *frame, struct frame *ret)
{
    struct shared *shared = frame->owner;
    if (frame->release != release_shared) {
        shared = malloc(sizeof *shared);
        if (!shared)
            return -ENOMEM;
        *shared = (struct shared){1, frame->owner, frame->release};
        frame->owner = shared;
        frame->release = release_shared;
    }
    atomic_fetch_add(&shared->owners, 1);
    *ret = *frame;
    return 0;
}

void frame_release(struct frame *frame)
{
    if (frame->release)
        frame->release(frame->owner);
    *frame = (struct frame){0};
}

int64_t frame_late_ns(const struct frame_info *info, int64_t max_age_ns)
{
    int64_t since_ns = info->received_ns, due_ns = info->decoded_ns - info->delay_ns;
    if (info->delay_ns > 0 && due_ns < since_ns)
        since_ns = due_ns;
    return max_age_ns > 0 ? since_ns + max_age_ns : INT64_MAX;
}

bool frame_is_late(const struct frame_info *info, int64_t max_age_ns)
{
    return monotonic_ns() > frame_late_ns(info, max_age_ns);
}
