#include "config/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"
#include "config/value.h"

// The row's member: a list with room for OPTIONS_MAX, or NULL, and its count.
static struct demuxer_option **list_of(const struct row *row, void *object)
{
    return value_member(row, object);
}

// Gives `value` away.
static int append(const struct row *row, void *object, const char *name, char *value,
                  struct place place)
{
    struct demuxer_option **list = list_of(row, object);
    int *n = object_count(row, object);
    if (!*list)
        *list = calloc(OPTIONS_MAX, sizeof **list);
    char *copy = strdup(name);
    if (!*list || !copy || !value) {
        free(copy);
        reader_forget(value);
        return -ENOMEM;
    }
    (*list)[(*n)++] = (struct demuxer_option){copy, value, place};
    return 0;
}

static bool has(const struct row *row, void *object, const char *name)
{
    for (int i = 0; i < *object_count(row, object); i++) {
        if (!strcmp((*list_of(row, object))[i].name, name))
            return true;
    }
    return false;
}

static void read_one(struct reader *r, const yaml_node_pair_t *pair, const struct row *row,
                     void *object)
{
    const char *name = reader_key(r, pair->key);
    if (!name)
        return;
    size_t path = reader_enter(r, name);
    if (has(row, object, name)) {
        mistake(&r->mistakes, reader_place(r, pair->key), r->path, "given before (each key once)");
    } else {
        char *value = reader_scalar(r, pair->value, row);
        if (value && append(row, object, name, value, reader_place(r, pair->key)) < 0)
            r->no_memory = true;
    }
    reader_leave(r, path);
}

bool options_read(struct reader *r, int index, const struct row *row, void *object)
{
    const yaml_node_t *node = reader_mapping(r, index, row);
    int before = r->mistakes.total;
    if (!node)
        return false;
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    const yaml_node_pair_t *end = node->data.mapping.pairs.top;
    options_free(row, object);
    if (end - pair > OPTIONS_MAX) {
        reader_refuse(r, index, row, "has too many entries");
        return false;
    }
    for (; pair < end; pair++)
        read_one(r, pair, row, object);
    return r->mistakes.total == before;
}

int options_own(const struct row *row, void *object)
{
    const struct demuxer_option *from = *list_of(row, object);
    int *count = object_count(row, object), n = *count, status = 0;
    *list_of(row, object) = NULL;
    *count = 0;
    for (int i = 0; i < n && !status; i++)
        status = append(row, object, from[i].name, strdup(from[i].value), from[i].place);
    return status;
}

void options_free(const struct row *row, void *object)
{
    struct demuxer_option **list = list_of(row, object);
    int *n = object_count(row, object);
    for (int i = 0; i < *n; i++) {
        free((*list)[i].name);
        reader_forget((*list)[i].value);
    }
    free(*list);
    *list = NULL;
    *n = 0;
}
