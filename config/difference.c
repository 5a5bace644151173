#include "config/difference.h"

#include <stdio.h>
#include <string.h>

#include "config/object.h"
#include "config/value.h"

enum { PATH_BYTES = 128, KEYS_BYTES = 2048 };

struct comparison {
    void (*each)(void *opaque, const char *path, enum config_change, const char *keys);
    void *opaque;
};

static void add_key(char *keys, const char *key)
{
    const size_t n = strlen(keys);
    snprintf(keys + n, KEYS_BYTES - n, "%s%s", n > 0 ? ", " : "", key);
}

// Ignores keys of other kernels, which `defaults` may set. A camera's `paused` comes from the root.
static void compare_values(const struct comparison *c, const char *path, const struct table *table,
                           const void *before, const void *after)
{
    const struct output_config *output = table_is_of_outputs(table) ? after : NULL;
    char keys[KEYS_BYTES] = "";
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        if (row_has_value(row) && table_has(table, row) &&
            !(output && !row_is_of(row, output->kernel)) && !value_equal(row, before, after))
            add_key(keys, row->key);
    }
    if (table == &camera_table && !((const struct camera_config *)before)->paused.line !=
                                      !((const struct camera_config *)after)->paused.line)
        add_key(keys, "paused");
    if (*keys)
        c->each(c->opaque, path, CHANGE_CHANGED, keys);
}

// Returns false for a camera's share of a batch.
static bool is_own(const struct config_row *row, const void *object)
{
    return row->items != &output_table || !((const struct output_config *)object)->is_batch;
}

static const char *find(const struct config_row *row, void *owner, const char *name)
{
    const char *items = *object_items(row, owner);
    for (int i = 0; i < *object_count(row, owner); i++) {
        const void *item = items + (size_t)i * row->items->size;
        if (is_own(row, item) && strcmp(*object_name(row->items, (void *)item), name) == 0)
            return item;
    }
    return NULL;
}

static void compare_items(const struct comparison *c, const char *path, const struct table *table,
                          void *before, void *after);

static void compare_row(const struct comparison *c, const char *path, const struct config_row *row,
                        void *before, void *after)
{
    char own[PATH_BYTES];
    const char *items = *object_items(row, after), *gone = *object_items(row, before);
    for (int i = 0; i < *object_count(row, after); i++) {
        const void *item = items + (size_t)i * row->items->size;
        const char *name = *object_name(row->items, (void *)item);
        if (!is_own(row, item))
            continue;
        const void *other = find(row, before, name);
        snprintf(own, sizeof own, "%s%s%s.%s", path, *path ? "." : "", row->key, name);
        if (!other) {
            c->each(c->opaque, own, CHANGE_ADDED, "");
            continue;
        }
        compare_values(c, own, row->items, other, item);
        compare_items(c, own, row->items, (void *)other, (void *)item);
    }
    for (int i = 0; i < *object_count(row, before); i++) {
        const void *item = gone + (size_t)i * row->items->size;
        const char *name = *object_name(row->items, (void *)item);
        if (!is_own(row, item) || find(row, after, name))
            continue;
        snprintf(own, sizeof own, "%s%s%s.%s", path, *path ? "." : "", row->key, name);
        c->each(c->opaque, own, CHANGE_REMOVED, "");
    }
}

static void compare_items(const struct comparison *c, const char *path, const struct table *table,
                          void *before, void *after)
{
    for (int i = 0; i < table->n; i++)
        if (table->rows[i].type == VALUE_ITEMS)
            compare_row(c, path, &table->rows[i], before, after);
}

void config_difference(const struct config *before, const struct config *after,
                       void (*each)(void *opaque, const char *path, enum config_change,
                                    const char *keys),
                       void *opaque)
{
    const struct comparison c = {each, opaque};
    compare_values(&c, "", &root_table, before, after);
    compare_items(&c, "", &root_table, (void *)before, (void *)after);
}
