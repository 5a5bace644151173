#include "config/equal.h"

#include <string.h>

static bool equal_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool equal_levels(const struct levels *a, const struct levels *b)
{
    return a->n == b->n && memcmp(a->v, b->v, (size_t)a->n * sizeof a->v[0]) == 0;
}

static bool equal_numbers(const double a[], const double b[], int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static bool equal_affine(const struct affine *a, const struct affine *b)
{
    return a->set == b->set && (!a->set || equal_numbers(a->m, b->m, 6));
}

static bool equal_crop(const struct crop *a, const struct crop *b)
{
    return a->set == b->set && (!a->set || memcmp(&a->rect, &b->rect, sizeof a->rect) == 0);
}

static bool equal_pin(const struct pin *a, const struct pin *b)
{
    return a->how == b->how && memcmp(&a->list, &b->list, sizeof a->list) == 0;
}

static bool equal_sink(const struct sink_address *a, const struct sink_address *b)
{
    return a->kind == b->kind && a->timed == b->timed && a->port == b->port &&
           equal_text(a->path, b->path) && equal_text(a->host, b->host);
}

// In the order given: the demuxer gets them in it.
static bool equal_options(const struct row *row, const void *a, const void *b)
{
    const struct demuxer_option *left = *(struct demuxer_option *const *)a;
    const struct demuxer_option *right = *(struct demuxer_option *const *)b;
    const ptrdiff_t count = (ptrdiff_t)row->count_offset - (ptrdiff_t)row->offset;
    const int n = *(const int *)((const char *)a + count);
    if (n != *(const int *)((const char *)b + count))
        return false;
    for (int i = 0; i < n; i++)
        if (!equal_text(left[i].name, right[i].name) || !equal_text(left[i].value, right[i].value))
            return false;
    return true;
}

// Types whose bytes are all of the value.
static bool equal_control(const struct control_address *a, const struct control_address *b)
{
    return a->off == b->off && equal_sink(&a->at, &b->at);
}

static size_t plain_size(enum value_type type)
{
    switch (type) {
    case VALUE_BOOL:
        return sizeof(bool);
    case VALUE_INT:
    case VALUE_CHOICE:
        return sizeof(int);
    case VALUE_DURATION:
        return sizeof(struct duration);
    case VALUE_BYTES:
        return sizeof(struct bytes);
    case VALUE_DIMENSIONS:
        return sizeof(struct dimensions);
    case VALUE_FILEMODE:
        return sizeof(struct filemode);
    case VALUE_SPLIT:
        return sizeof(struct split);
    default:
        return 0;
    }
}

bool value_equal(const struct row *row, const void *left, const void *right)
{
    const void *a = (const char *)left + row->offset, *b = (const char *)right + row->offset;
    const struct channels *some = a, *others = b;
    switch (row->type) {
    case VALUE_NUMBER:
    case VALUE_FRACTION:
        return equal_numbers(a, b, 1);
    case VALUE_STRING:
        return equal_text(*(char *const *)a, *(char *const *)b);
    case VALUE_LEVELS:
        return equal_levels(a, b);
    case VALUE_CHANNELS:
        return some->n == others->n && equal_numbers(some->v, others->v, some->n);
    case VALUE_AFFINE:
        return equal_affine(a, b);
    case VALUE_CROP:
        return equal_crop(a, b);
    case VALUE_PIN:
        return equal_pin(a, b);
    case VALUE_SINK:
        return equal_sink(a, b);
    case VALUE_CONTROL:
        return equal_control(a, b);
    case VALUE_HTTP:
        return equal_sink(&((const struct http_address *)a)->at,
                          &((const struct http_address *)b)->at);
    case VALUE_OPTIONS:
        return equal_options(row, a, b);
    default:
        return memcmp(a, b, plain_size(row->type)) == 0;
    }
}
