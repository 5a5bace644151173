#include "daemon/codec/frame.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/wire.h"

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

static enum field_order order_of_both(enum field_order a, enum field_order b)
{
    if (a == FIELDS_NONE || a == b)
        return b;
    return b == FIELDS_NONE ? a : FIELDS_UNKNOWN;
}

void video_signal_follow(struct video_signal *signal, struct frame_info *info, bool begins)
{
    const enum field_order before = begins ? FIELDS_NONE : signal->field_order;
    signal->field_order = info->field_order = order_of_both(before, info->field_order);
    signal->hdr = info->flags & FRAMED_FLAG_HDR;
}

#define COMBS                                                                                      \
    ": framed does not deinterlace them, so whatever moves has combed edges; switch the camera "   \
    "to progressive if it can"

const char *video_signal_explain_fields(const struct video_signal *signal)
{
    static const char *const texts[] = {
        [FIELDS_NONE] = "pictures are progressive now",
        [FIELDS_TOP_FIRST] = "pictures are interlaced, top field first" COMBS,
        [FIELDS_BOTTOM_FIRST] = "pictures are interlaced, bottom field first" COMBS,
        [FIELDS_UNKNOWN] = "pictures are interlaced, in no single field order" COMBS,
    };
    return texts[signal->field_order];
}

const char *video_signal_explain_hdr(const struct video_signal *signal)
{
    return signal->hdr ? "pictures are HDR (their transfer is PQ or HLG): framed does not tone-map "
                         "them, so their levels are not those of SDR pictures; switch the camera "
                         "to SDR if it can"
                       : "pictures are SDR now";
}
