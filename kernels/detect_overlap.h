// The overlap of two boxes, and the tables of boxes for suppression.
#ifndef FRAMED_KERNELS_DETECT_OVERLAP_H
#define FRAMED_KERNELS_DETECT_OVERLAP_H

#include "kernels/detect_head.h"

// The candidates' boxes in order: tables in the workspace, padded to whole groups of BOX_GROUP.
struct detect_boxes {
    float *x1, *y1, *x2, *y2; // as compared; of rotated boxes the hull
    float *area;
    int32_t *label;   // boxes of different labels do not suppress each other; LABEL_GONE: no box
    float (*quad)[8]; // of rotated boxes
};

enum { BOX_GROUP = 64, LABEL_GONE = -1 };

// Offset that compat_ultralytics adds to the coordinates of a class.
static inline FRAMED_HD float label_distance(int32_t label)
{
    return (float)label * 7680.0f;
}

// Writes a candidate's box, or LABEL_GONE, to place i. Returns false if the box is not finite.
static inline FRAMED_HD bool boxes_set(const struct detect_boxes *to, int i, const struct detect *d,
                                       const struct detect_input *in, uint64_t key)
{
    const bool by_distance = d->params.compat_ultralytics && !d->params.agnostic;
    const float distance = by_distance ? label_distance(key_label(key)) : 0;
    const float one = (float)d->params.offset;
    struct detect_box box;
    const bool finite = box_of(d, in, key_anchor(key), &box);
    to->label[i] = by_distance || d->params.agnostic ? 0 : key_label(key);
    if (!finite || !size_is_wanted(d, in, &box)) {
        to->x1[i] = to->y1[i] = to->x2[i] = to->y2[i] = to->area[i] = 0;
        to->label[i] = LABEL_GONE;
        return finite;
    }
    if (by_distance && d->params.rotated) {
        box.x += distance;
        box.y += distance;
    }
    if (d->params.rotated) {
        box_corners(&box, true, to->quad[i]);
        hull_of(to->quad[i], &to->x1[i], &to->y1[i], &to->x2[i], &to->y2[i]);
        to->area[i] = box.width * box.height;
        return true;
    }
    to->x1[i] = by_distance ? box.x1 + distance : box.x1;
    to->y1[i] = by_distance ? box.y1 + distance : box.y1;
    to->x2[i] = by_distance ? box.x2 + distance : box.x2;
    to->y2[i] = by_distance ? box.y2 + distance : box.y2;
    to->area[i] = (to->x2[i] - to->x1[i] + one) * (to->y2[i] - to->y1[i] + one);
    return true;
}

// --- upright boxes

// An upright box, or the hull of a rotated one.
struct detect_corners {
    float x1, y1, x2, y2, area;
    int32_t label;
};

static inline FRAMED_HD struct detect_corners corners_at(const struct detect_boxes *b, int i)
{
    const struct detect_corners box = {b->x1[i], b->y1[i],   b->x2[i],
                                       b->y2[i], b->area[i], b->label[i]};
    return box;
}

static inline FRAMED_HD float intersection_of(const struct detect_corners *a,
                                              const struct detect_corners *b, float one)
{
    const float x1 = a->x1 > b->x1 ? a->x1 : b->x1, y1 = a->y1 > b->y1 ? a->y1 : b->y1;
    const float x2 = a->x2 < b->x2 ? a->x2 : b->x2, y2 = a->y2 < b->y2 ? a->y2 : b->y2;
    const float width = x2 - x1 + one, height = y2 - y1 + one;
    return (width > 0 ? width : 0) * (height > 0 ? height : 0);
}

// --- rotated boxes: the part of quad b inside quad a

enum { POLYGON_MAX = 16 }; // corners; two convex quads give at most 8, more only by rounding

struct polygon {
    double x[POLYGON_MAX], y[POLYGON_MAX];
    int n;
};

// Cuts off the polygon's part on the right of the line from (x0, y0) to (x1, y1), with y downwards:
// keeps the other corners, and adds the points where edges cross the line.
static inline FRAMED_HD void polygon_cut(struct polygon *to, const struct polygon *from, double x0,
                                         double y0, double x1, double y1)
{
    to->n = 0;
    for (int i = 0; i < from->n; i++) {
        const int next = i + 1 < from->n ? i + 1 : 0;
        const double ax = from->x[i], ay = from->y[i], bx = from->x[next], by = from->y[next];
        const double a = (x1 - x0) * (ay - y0) - (y1 - y0) * (ax - x0);
        const double b = (x1 - x0) * (by - y0) - (y1 - y0) * (bx - x0);
        if (a <= 0 && to->n < POLYGON_MAX) {
            to->x[to->n] = ax;
            to->y[to->n++] = ay;
        }
        if ((a <= 0) != (b <= 0) && to->n < POLYGON_MAX) {
            const double t = a / (a - b);
            to->x[to->n] = ax + t * (bx - ax);
            to->y[to->n++] = ay + t * (by - ay);
        }
    }
}

static inline FRAMED_HD double quads_shared(const float a[8], const float b[8])
{
    struct polygon p[2];
    p[0].n = 4;
    for (int i = 0; i < 4; i++) {
        p[0].x[i] = b[2 * i];
        p[0].y[i] = b[2 * i + 1];
    }
    for (int i = 0; i < 4; i++) {
        const int next = i < 3 ? i + 1 : 0;
        polygon_cut(&p[~i & 1], &p[i & 1], a[2 * i], a[2 * i + 1], a[2 * next], a[2 * next + 1]);
    }
    double twice = 0;
    for (int i = 1; i + 1 < p[0].n; i++)
        twice += (p[0].x[i] - p[0].x[0]) * (p[0].y[i + 1] - p[0].y[0]) -
                 (p[0].x[i + 1] - p[0].x[0]) * (p[0].y[i] - p[0].y[0]);
    return twice < 0 ? -twice * 0.5 : twice * 0.5;
}

#define AREA_LEAST 1e-14f // smaller areas of rotated boxes, and negative ones, overlap nothing

// --- any two boxes

// Overlap of box i and the later box j.
static inline FRAMED_HD float quotient_of(const struct detect *d, const struct detect_boxes *b,
                                          int i, int j)
{
    const struct detect_corners first = corners_at(b, i), second = corners_at(b, j);
    if (!d->params.rotated) {
        const float shared = intersection_of(&first, &second, (float)d->params.offset);
        return shared / (first.area + second.area - shared);
    }
    if (!(first.area >= AREA_LEAST) || !(second.area >= AREA_LEAST) ||
        !(intersection_of(&first, &second, 0) > 0))
        return 0;
    const double shared = quads_shared(b->quad[i], b->quad[j]);
    return (float)(shared / ((double)first.area + (double)second.area - shared));
}

static inline FRAMED_HD bool suppresses(const struct detect *d, const struct detect_boxes *b, int i,
                                        int j)
{
    return b->label[i] == b->label[j] && quotient_of(d, b, i, j) > d->overlap;
}

// --- the additional memory for detection in one picture on a CPU

struct detect_workspace {
    uint64_t *keys, *spare; // detect.capacity of each
    struct detect_boxes boxes;
    float *scores;
    int32_t *kept;  // places among the boxes, max_det
    uint64_t *gone; // a bit per box
    size_t bytes;   // of all
};

// Places the parts from `base` on; NULL computes `bytes` alone.
struct detect_workspace detect_workspace_at(const struct detect *, void *base);

// --- parts of the reference that versions reuse where wide registers gain little

// Writes the candidates of anchors [first, end) as keys, by anchor and class. Returns their number,
// and adds candidates of an invalid class to `dropped`.
int detect_candidates(const struct detect *, const struct detect_input *, uint32_t first,
                      uint32_t end, uint64_t *keys, uint32_t *dropped);

// Writes the places of kept boxes, and returns their number. Changes scores and labels.
int detect_suppress_softly(const struct detect *, const struct detect_boxes *, int n, int32_t *kept,
                           float *scores);

// Writes the result->count kept candidates of `keys` to the result.
void detect_write(const struct detect *, const struct detect_input *, struct detect_result *result,
                  const uint64_t *keys, const struct detect_workspace *);

#endif
