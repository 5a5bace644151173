#include "config/rois.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rois_add(struct rois *rois, const char *name, struct rect rect, const char **wrong)
{
    const size_t length = strlen(name);
    if (!length || length >= sizeof rois->list->name ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != length)
        *wrong = "has a name other than 1 to 23 of A-Z a-z 0-9 _ -";
    else if (!strcmp(name, ROI_ALL))
        *wrong = "has a name that stands for all regions";
    else
        *wrong = NULL;
    if (*wrong)
        return -EINVAL;
    if (rois_find(rois, name))
        return -EEXIST;
    struct roi *list = realloc(rois->list, (size_t)(rois->n + 1) * sizeof *list);
    if (!list)
        return -ENOMEM;
    rois->list = list;
    list[rois->n] = (struct roi){.rect = rect};
    memcpy(list[rois->n++].name, name, length);
    return 0;
}

int rois_copy(struct rois *ret, const struct rois *from)
{
    *ret = (struct rois){0};
    if (from->n == 0)
        return 0;
    ret->list = calloc((size_t)from->n, sizeof *ret->list);
    if (!ret->list)
        return -ENOMEM;
    memcpy(ret->list, from->list, (size_t)from->n * sizeof *ret->list);
    ret->n = from->n;
    return 0;
}

void rois_free(struct rois *rois)
{
    free(rois->list);
    *rois = (struct rois){0};
}

bool rois_equal(const struct rois *a, const struct rois *b)
{
    return a->n == b->n && (a->n == 0 || !memcmp(a->list, b->list, (size_t)a->n * sizeof *a->list));
}

const struct roi *rois_find(const struct rois *rois, const char *name)
{
    for (int i = 0; i < rois->n; i++)
        if (!strcmp(rois->list[i].name, name))
            return &rois->list[i];
    return NULL;
}
