// Merges the lists of tiles. Hundreds of boxes: plain loops suffice.
#include <errno.h>
#include <stdlib.h>

#include "kernels/detect_number.h"

size_t detect_merge_bytes(int n)
{
    return (size_t)n * (sizeof(uint64_t) + sizeof(int32_t));
}

static int keys_compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Sorts the valid boxes of the list, best first. Returns their number.
static int order(uint64_t *keys, const struct detection from[], int n)
{
    int left = 0;
    for (int i = 0; i < n; i++) {
        const struct detection *box = &from[i];
        if (box->score == box->score && is_finite(box->x1) && is_finite(box->y1) &&
            is_finite(box->x2) && is_finite(box->y2))
            keys[left++] = (uint64_t)score_order(box->score) << KEY_SCORE_SHIFT | (uint32_t)i;
    }
    qsort(keys, (size_t)left, sizeof keys[0], keys_compare);
    return left;
}

static float area_of(const struct detection *box)
{
    return (box->x2 - box->x1) * (box->y2 - box->y1);
}

static bool overlaps(const struct detection *a, const struct detection *b,
                     const struct detect_merge *merge)
{
    const float width = (a->x2 < b->x2 ? a->x2 : b->x2) - (a->x1 > b->x1 ? a->x1 : b->x1);
    const float height = (a->y2 < b->y2 ? a->y2 : b->y2) - (a->y1 > b->y1 ? a->y1 : b->y1);
    const float shared = (width > 0 ? width : 0) * (height > 0 ? height : 0);
    const float one = area_of(a), other = area_of(b);
    const float smaller = one < other ? one : other;
    const float quotient = shared / (merge->metric == DETECT_IOS ? smaller : one + other - shared);
    return (merge->agnostic || a->label == b->label) && (double)quotient > merge->threshold;
}

static void absorb(struct detection *box, const struct detection *other)
{
    box->x1 = other->x1 < box->x1 ? other->x1 : box->x1;
    box->y1 = other->y1 < box->y1 ? other->y1 : box->y1;
    box->x2 = other->x2 > box->x2 ? other->x2 : box->x2;
    box->y2 = other->y2 > box->y2 ? other->y2 : box->y2;
}

int detect_merge(struct detection to[], int32_t ret_source[], const struct detection from[], int n,
                 const struct detect_merge *merge, void *workspace)
{
    uint64_t *keys = workspace;
    int32_t *source = ret_source ? ret_source : (int32_t *)(keys + n);
    int count = 0;
    if (!(merge->threshold >= 0 && merge->threshold <= 1) || n < 0 || merge->max_det < 0)
        return -EINVAL;
    const int left = order(keys, from, n);
    for (int i = 0; i < left; i++) {
        const int at = (int)(uint32_t)keys[i];
        int k = 0;
        while (k < count && !overlaps(&from[source[k]], &from[at], merge))
            k++;
        if (k < count && merge->absorb)
            absorb(&to[k], &from[at]);
        if (k == count && (merge->max_det == 0 || count < merge->max_det)) {
            to[count] = from[at];
            source[count++] = at;
        }
    }
    return count;
}
