// Maps boxes and points from the payload to the camera's picture.
#include "client/framed.h"
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
