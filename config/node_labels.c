#include "config/node_labels.h"

#include <errno.h>
#include <string.h>

bool is_cluster_name(const char *text, size_t size)
{
    static const char characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                     "0123456789._-";
    const size_t length = strspn(text, characters);
    return length > 0 && length < size && !text[length];
}

int node_labels_add(struct node_labels *labels, const char *name, const char *value,
                    const char **wrong)
{
    for (int i = 0; i < labels->n; i++)
        if (!strcmp(labels->list[i].name, name))
            return -EEXIST;
    struct node_label label = {0};
    if (!is_cluster_name(name, sizeof label.name))
        *wrong = "has a name that cannot be";
    else if (!is_cluster_name(value, sizeof label.value))
        *wrong = "is no label";
    else if (labels->n == NODE_LABELS_MAX)
        *wrong = "is one label too many";
    else {
        strcpy(label.name, name);
        strcpy(label.value, value);
        labels->list[labels->n++] = label;
        return 0;
    }
    return -EINVAL;
}
