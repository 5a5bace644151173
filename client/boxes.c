// From the payload to the camera's picture. The matrices speak of pixel centres and corners of
// edges, so that a corner p lies at dst_to_src * (p - 1/2) + 1/2. No other code may map.
#include "client/framed.h"

struct point {
    double x, y;
};

static struct point map(const struct framed_header *header, double x, double y)
{
    const float *m = header->dst_to_src;
    x -= 0.5;
    y -= 0.5;
    return (struct point){(double)m[0] * x + (double)m[1] * y + (double)m[2] + 0.5,
                          (double)m[3] * x + (double)m[4] * y + (double)m[5] + 0.5};
}

// A value that is not a number stays so.
static double clip(double value, uint32_t end, unsigned flags)
{
    if (!(flags & FRAMED_CLIP))
        return value;
    return value < 0 ? 0 : value > end ? end : value;
}

void framed_to_source(const struct framed_header *header, float *boxes, size_t n, size_t stride,
                      unsigned flags)
{
    for (float *box = boxes; n > 0; n--, box += stride) {
        const struct point corner[] = {map(header, (double)box[0], (double)box[1]),
                                       map(header, (double)box[2], (double)box[1]),
                                       map(header, (double)box[0], (double)box[3]),
                                       map(header, (double)box[2], (double)box[3])};
        struct point low = corner[0], high = corner[0];
        for (int i = 1; i < 4; i++) {
            low.x = corner[i].x < low.x ? corner[i].x : low.x;
            low.y = corner[i].y < low.y ? corner[i].y : low.y;
            high.x = corner[i].x > high.x ? corner[i].x : high.x;
            high.y = corner[i].y > high.y ? corner[i].y : high.y;
        }
        box[0] = (float)clip(low.x, header->source_width, flags);
        box[1] = (float)clip(low.y, header->source_height, flags);
        box[2] = (float)clip(high.x, header->source_width, flags);
        box[3] = (float)clip(high.y, header->source_height, flags);
    }
}

void framed_points_to_source(const struct framed_header *header, float *points, size_t n,
                             size_t stride, unsigned flags)
{
    for (float *point = points; n > 0; n--, point += stride) {
        const struct point mapped = map(header, (double)point[0], (double)point[1]);
        point[0] = (float)clip(mapped.x, header->source_width, flags);
        point[1] = (float)clip(mapped.y, header->source_height, flags);
    }
}
