#include "daemon/camera/stage_timing.h"

#include "daemon/wire.h"

static const struct {
    uint32_t flag;
    const char *name;
} counted[] = {
    [COUNTED_DAMAGED] = {FRAMED_FLAG_DAMAGED, "damaged"},
    [COUNTED_INTERLACED] = {FRAMED_FLAG_INTERLACED, "interlaced"},
    [COUNTED_HDR] = {FRAMED_FLAG_HDR, "hdr"},
};

const char *counted_flag_name(enum counted_flag flag)
{
    return counted[flag].name;
}

static void add_one(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void stage_timing_picture(struct stage_timing *progress, const struct frame *frame)
{
    const struct image *image = &frame->image;
    for (int i = 0; i < COUNTED_FLAGS; i++)
        if (frame->info.flags & counted[i].flag)
            add_one(&progress->flagged[i]);
    if (frame->info.converted)
        add_one(&progress->converted);
    add_one(&progress->pictures);
    atomic_store_explicit(&progress->size, (uint64_t)image->width << 32 | (unsigned)image->height,
                          memory_order_relaxed);
}
