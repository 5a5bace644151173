// Maps boxes and points from the payload to the camera's picture, and merges the lists of a
// picture's tiles.
#include <errno.h>
#include <stdlib.h>

#include "client/framed.h"
#include "kernels/detect.h"
#include "kernels/image.h"

static float clip(double value, uint32_t end, unsigned flags)
{
    return flags & FRAMED_CLIP ? box_clip(value, end) : (float)value;
}

void framed_to_source(const struct framed_header *header, float *boxes, size_t n, size_t stride,
                      unsigned flags)
{
    for (float *box = boxes; n > 0; n--, box += stride) {
        double mapped[4];
        box_map(header->dst_to_src, box, mapped);
        box[0] = clip(mapped[0], header->source_width, flags);
        box[1] = clip(mapped[1], header->source_height, flags);
        box[2] = clip(mapped[2], header->source_width, flags);
        box[3] = clip(mapped[3], header->source_height, flags);
    }
}

void framed_points_to_source(const struct framed_header *header, float *points, size_t n,
                             size_t stride, unsigned flags)
{
    for (float *point = points; n > 0; n--, point += stride) {
        const struct box_corner mapped =
            box_map_corner(header->dst_to_src, (double)point[0], (double)point[1]);
        point[0] = clip(mapped.x, header->source_width, flags);
        point[1] = clip(mapped.y, header->source_height, flags);
    }
}

// Converts to struct detection and back: only that type has the fields that detect_merge compares.
static int merge(struct framed_detection *to, int32_t *ret_source,
                 const struct framed_detection *from, int n, const struct detect_merge *rule,
                 struct detection *boxes)
{
    struct detection *left = boxes + n;
    int32_t *source = (int32_t *)(left + n);
    for (int i = 0; i < n; i++)
        boxes[i] = (struct detection){.x1 = from[i].x1,
                                      .y1 = from[i].y1,
                                      .x2 = from[i].x2,
                                      .y2 = from[i].y2,
                                      .score = from[i].score,
                                      .label = from[i].class_id};
    const int count = detect_merge(left, source, boxes, n, rule, source + n + n % 2);
    for (int i = 0; i < count; i++) {
        to[i] = from[source[i]];
        to[i].x1 = left[i].x1;
        to[i].y1 = left[i].y1;
        to[i].x2 = left[i].x2;
        to[i].y2 = left[i].y2;
        if (ret_source)
            ret_source[i] = source[i];
    }
    return count;
}

int framed_merge(struct framed_detection *to, int32_t *ret_source,
                 const struct framed_detection *from, int n, double threshold, unsigned flags)
{
    const unsigned known = FRAMED_MERGE_IOS | FRAMED_MERGE_ABSORB | FRAMED_MERGE_AGNOSTIC;
    const struct detect_merge rule = {
        .metric = flags & FRAMED_MERGE_IOS ? DETECT_IOS : DETECT_IOU,
        .absorb = flags & FRAMED_MERGE_ABSORB,
        .agnostic = flags & FRAMED_MERGE_AGNOSTIC,
        .threshold = threshold,
    };
    if (n < 0 || flags & ~known || !(threshold >= 0 && threshold <= 1)) {
        errno = EINVAL;
        return -1;
    }
    const size_t boxes = (size_t)n;
    void *memory = malloc(2 * boxes * sizeof(struct detection) + (boxes + 2) * sizeof(int32_t) +
                          detect_merge_bytes(n));
    if (!memory)
        return -1;
    const int count = merge(to, ret_source, from, n, &rule, memory);
    free(memory);
    return count;
}
