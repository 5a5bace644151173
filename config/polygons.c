#include "config/polygons.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/quantity.h"
#include "kernels/image.h"

// Reads the whole number at *at, and moves *at behind it and its separator.
static const char *read_coordinate(const char **at, int *ret)
{
    const size_t n = strcspn(*at, ", ");
    if (!whole_read(*at, n, ret))
        return "has a coordinate that is not a whole number of pixels";
    if (*ret < 0 || *ret > IMAGE_SIDE_MAX)
        return "has a coordinate that is out of range";
    *at += n;
    *at += strspn(*at, " ");
    if (**at != ',')
        return NULL;
    ++*at;
    *at += strspn(*at, " ");
    return **at ? NULL : "has a comma behind its last point";
}

static const char *read_polygon(struct polygon *ret, const char *text)
{
    const char *wrong = NULL, *at = text + strspn(text, " ");
    while (*at && !wrong) {
        struct point point;
        if (ret->n == POLYGON_POINTS_MAX)
            return "has a polygon of too many points";
        wrong = read_coordinate(&at, &point.x);
        if (!wrong && !*at)
            return "has a point without a y";
        if (!wrong)
            wrong = read_coordinate(&at, &point.y);
        if (!wrong)
            ret->point[ret->n++] = point;
    }
    return wrong ? wrong : ret->n < 3 ? "has a polygon of fewer than three points" : NULL;
}

int polygons_parse(struct polygons *ret, const char *const text[], int n, const char **wrong)
{
    *ret = (struct polygons){.n = n};
    *wrong = NULL;
    ret->list = calloc((size_t)n, sizeof *ret->list);
    if (!ret->list)
        return -ENOMEM;
    for (int i = 0; !*wrong && i < n; i++)
        *wrong = read_polygon(&ret->list[i], text[i]);
    if (!*wrong)
        return 0;
    polygons_free(ret);
    return -EINVAL;
}

int polygons_copy(struct polygons *ret, const struct polygons *from)
{
    *ret = (struct polygons){0};
    if (from->n == 0)
        return 0;
    ret->list = calloc((size_t)from->n, sizeof *ret->list);
    if (!ret->list)
        return -ENOMEM;
    memcpy(ret->list, from->list, (size_t)from->n * sizeof *ret->list);
    ret->n = from->n;
    return 0;
}

void polygons_free(struct polygons *polygons)
{
    free(polygons->list);
    *polygons = (struct polygons){0};
}

bool polygons_equal(const struct polygons *a, const struct polygons *b)
{
    return a->n == b->n && (a->n == 0 || !memcmp(a->list, b->list, (size_t)a->n * sizeof *a->list));
}
