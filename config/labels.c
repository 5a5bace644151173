#include "config/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int labels_parse(struct labels *ret, const char *const text[], int n, const char **wrong)
{
    size_t bytes = 0;
    if (n == 1 && text[0][0] && strchr("/.~", text[0][0])) {
        *wrong = "is a path, but the labels themselves stand here";
        return -EINVAL;
    }
    for (int i = 0; i < n; i++) {
        const size_t length = strlen(text[i]);
        if (length == 0 || length > LABEL_MAX) {
            *wrong = length ? "has a label that is too long" : "has an empty label";
            return -EINVAL;
        }
        bytes += length + 1;
    }
    char *to = ret->text = malloc(bytes);
    if (!to)
        return -ENOMEM;
    ret->bytes = bytes;
    for (int i = 0; i < n; i++)
        to = stpcpy(to, text[i]) + 1;
    return 0;
}

int labels_copy(struct labels *ret, const struct labels *from)
{
    *ret = (struct labels){0};
    if (from->bytes == 0)
        return 0;
    ret->text = malloc(from->bytes);
    if (!ret->text)
        return -ENOMEM;
    memcpy(ret->text, from->text, from->bytes);
    ret->bytes = from->bytes;
    return 0;
}

void labels_free(struct labels *labels)
{
    free(labels->text);
    *labels = (struct labels){0};
}

bool labels_equal(const struct labels *a, const struct labels *b)
{
    return a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->text, b->text, a->bytes) == 0);
}

const char *labels_next(const struct labels *labels, const char *label)
{
    const char *next = label ? label + strlen(label) + 1 : labels->text;
    return next && next < labels->text + labels->bytes ? next : NULL;
}

int labels_find(const struct labels *labels, const char *wanted)
{
    int i = 0;
    for (const char *label = NULL; (label = labels_next(labels, label)); i++)
        if (strcmp(label, wanted) == 0)
            return i;
    return -1;
}
