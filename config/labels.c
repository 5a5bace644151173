#include "config/labels.h"

#include <errno.h>
#include <string.h>

#include "config/text_list.h"

int labels_parse(struct labels *ret, const char *const text[], int n, const char **wrong)
{
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
    }
    return text_list_open(&ret->list, text, n);
}

int labels_find(const struct labels *labels, const char *wanted)
{
    int i = 0;
    for (const char *label = NULL; (label = text_list_next(&labels->list, label)); i++)
        if (strcmp(label, wanted) == 0)
            return i;
    return -1;
}
