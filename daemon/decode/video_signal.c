#include "daemon/decode/video_signal.h"

#include "daemon/wire.h"

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
