#include "kernels/lut.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct lut_plane) == LUT_PLANE, "versions load it as one");

static bool params_are_valid(const struct lut_params *p)
{
    bool valid = p->points > 0 || p->curve_points > 0;
    valid =
        valid && (p->points == 0 || (p->points >= LUT_POINTS_MIN && p->points <= LUT_POINTS_MAX));
    valid = valid && (p->curve_points == 0 || (p->curve_points >= LUT_POINTS_MIN &&
                                               p->curve_points <= LUT_CURVE_POINTS_MAX));
    for (int c = 0; c < 3; c++) {
        valid = valid && (p->points == 0 || p->last[c] > p->first[c]);
        valid = valid && (p->curve_points == 0 || p->curve_last[c] > p->curve_first[c]);
    }
    return valid;
}

static double between(double x, double first, double last)
{
    return fmin(fmax((x - first) / (last - first), 0), 1);
}

// The curve's value for an input of level / 255.
static double curve_at(const struct lut_params *p, int c, int level)
{
    const int last = p->curve_points - 1;
    const double at = between(level / 255.0, p->curve_first[c], p->curve_last[c]) * last;
    const int i = at < last ? (int)at : last - 1;
    const double near = (double)p->curve[3 * i + c], far = (double)p->curve[3 * i + 3 + c];
    return near + (far - near) * (at - i);
}

// Position of a level along an axis, in cells.
static double position(const struct lut_params *p, int points, int c, int level)
{
    if (p->curve_points > 0) {
        const double x = curve_at(p, c, level);
        return (p->points > 0 ? between(x, p->first[c], p->last[c]) : fmin(fmax(x, 0), 1)) *
               (points - 1);
    }
    // level / 255 would round, and could move a level off its node
    return between(level, 255 * p->first[c], 255 * p->last[c]) * (points - 1);
}

static void axes_init(struct lut *lut, const struct lut_params *p)
{
    lut->linear = p->curve_points == 0;
    for (int c = 0; c < 3; c++) {
        for (int level = 0; level < 256; level++) {
            const double at = position(p, lut->points, c, level);
            const int cell = at < lut->points - 1 ? (int)at : lut->points - 2;
            lut->cell[c][level] = (uint8_t)cell;
            lut->weight[c][level] = (uint16_t)((at - cell) * WEIGHT_ONE + 0.5);
        }
        lut->linear = lut->linear && p->first[c] == 0 && p->last[c] == 1;
    }
}

// Level of the cube's node at (red, green, blue); without a cube, of a cube of corners.
static int node_at(const struct lut_params *p, const int at[3], int c)
{
    if (p->points == 0)
        return at[c] * 255;
    const size_t node = ((size_t)at[2] * p->points + at[1]) * p->points + at[0];
    return (int)(fmin(fmax((double)p->nodes[3 * node + c], 0), 1) * 255 + 0.5);
}

static void planes_init(struct lut *lut, const struct lut_params *p)
{
    const int cells = lut->points - 1;
    struct lut_plane *to = lut->plane;
    for (int red = 0; red <= cells; red++)
        for (int green = 0; green < cells; green++)
            for (int blue = 0; blue < cells; blue++, to++)
                for (int i = 0; i < 4; i++)
                    for (int c = 0; c < 3; c++) {
                        const int at[3] = {red, green + i / 2, blue + i % 2};
                        to->node[c][i] = (int8_t)(node_at(p, at, c) - 128);
                    }
}

static size_t bytes_of(int points)
{
    const size_t cells = (size_t)points - 1;
    return sizeof(struct lut) + points * cells * cells * sizeof(struct lut_plane);
}

int lut_make(struct lut **ret, const struct lut_params *params)
{
    if (!params_are_valid(params))
        return -EINVAL;
    const int points = params->points > 0 ? params->points : 2;
    const size_t bytes = (bytes_of(points) + 63) & ~(size_t)63;
    struct lut *lut = aligned_alloc(64, bytes);
    if (!lut)
        return -ENOMEM;
    memset(lut, 0, bytes);
    lut->references = 1;
    lut->cube_points = params->points;
    lut->curve_points = params->curve_points;
    lut->points = points;
    lut->interpolation = params->interpolation;
    lut->step_green = points - 1;
    lut->step_red = (points - 1) * (points - 1);
    axes_init(lut, params);
    planes_init(lut, params);
    *ret = lut;
    return 0;
}

struct lut *lut_ref(const struct lut *lut)
{
    struct lut *own = (struct lut *)lut;
    if (own)
        __atomic_add_fetch(&own->references, 1, __ATOMIC_RELAXED);
    return own;
}

void lut_unref(const struct lut *lut)
{
    struct lut *own = (struct lut *)lut;
    if (own && __atomic_sub_fetch(&own->references, 1, __ATOMIC_ACQ_REL) == 0)
        free(own);
}

size_t lut_bytes(const struct lut *lut)
{
    return bytes_of(lut->points);
}

bool lut_equal(const struct lut *a, const struct lut *b)
{
    if (a == b || !a || !b)
        return a == b;
    const size_t from = offsetof(struct lut, cube_points);
    return a->points == b->points &&
           memcmp((const char *)a + from, (const char *)b + from, lut_bytes(a) - from) == 0;
}
