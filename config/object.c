#include "config/object.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "config/equal.h"
#include "config/options.h"
#include "config/value.h"

char **object_name(const struct table *table, void *object)
{
    return (char **)((char *)object + table->name_offset);
}

struct place *object_place(const struct table *table, void *object)
{
    return (struct place *)((char *)object + table->place_offset);
}

static struct place *value_place(const struct table *table, const void *object,
                                 const struct row *row)
{
    struct places *places = (struct places *)((char *)object + table->places_offset);
    return &places->value[row - table->rows];
}

void object_set_place(const struct table *table, void *object, const struct row *row,
                      struct place place)
{
    *value_place(table, object, row) = place;
}

struct place object_value_place(const struct table *table, const void *object, const char *key)
{
    const struct place at = *value_place(table, object, table_find(table, key));
    if (at.line > 0)
        return at;
    return table->name_max ? *object_place(table, (void *)object) : (struct place){1, 1};
}

bool object_is_known(const struct table *table, const void *object, const char *key)
{
    return value_place(table, object, table_find(table, key))->line >= 0;
}

void **object_items(const struct row *row, void *object)
{
    return (void **)((char *)object + row->offset);
}

int *object_count(const struct row *row, void *object)
{
    return (int *)((char *)object + row->count_offset);
}

int object_init(const struct table *table, void *object)
{
    for (int i = 0; i < table->n; i++) {
        const struct row *row = &table->rows[i];
        const char *wrong;
        int status = row->text ? value_parse(row, object, &row->text, 1, &wrong) : 0;
        assert(status != -EINVAL);
        if (status < 0)
            return status;
    }
    return 0;
}

static int own_string(char **string)
{
    if (!*string)
        return 0;
    *string = strdup(*string);
    return *string ? 0 : -ENOMEM;
}

static int own_value(const struct row *row, void *object)
{
    struct sink_address address;
    switch (row->type) {
    case VALUE_STRING:
        return own_string(value_member(row, object));
    case VALUE_OPTIONS:
        return options_own(row, object);
    case VALUE_SINK:
        address = *(struct sink_address *)value_member(row, object);
        return address_copy(value_member(row, object), &address);
    default:
        return 0;
    }
}

int object_own(const struct table *table, void *object)
{
    int status = 0;
    for (int i = 0; i < table->n; i++) {
        if (own_value(&table->rows[i], object) < 0)
            status = -ENOMEM;
    }
    return status;
}

static void forget_items(const struct table *table, void *object)
{
    for (int i = 0; i < table->n; i++) {
        const struct row *row = &table->rows[i];
        if (row->type != VALUE_ITEMS)
            continue;
        *object_items(row, object) = NULL;
        *object_count(row, object) = 0;
    }
}

void *object_copy(const struct table *table, const void *object)
{
    void *copy = malloc(table->size);
    if (!copy)
        return NULL;
    memcpy(copy, object, table->size);
    forget_items(table, copy);
    char **name = object_name(table, copy);
    *name = strdup(*name);
    if (object_own(table, copy) == 0 && *name)
        return copy;
    object_free(table, copy);
    free(copy);
    return NULL;
}

// Which kernel's keys an object of the table has; FOR_BOTH: all.
static enum for_kernel kernel_of(const struct table *table, const void *object)
{
    if (table != &output_table)
        return FOR_BOTH;
    return ((const struct output_config *)object)->kernel == OP_WARP ? FOR_WARP : FOR_YUV;
}

bool object_equal(const struct table *table, const void *a, const void *b)
{
    enum for_kernel kernel = kernel_of(table, a);
    for (int i = 0; i < table->n; i++) {
        const struct row *row = &table->rows[i];
        bool known = row->kernel == FOR_BOTH || kernel == FOR_BOTH || row->kernel == kernel;
        if (known && row_has_value(row) && !value_equal(row, a, b))
            return false;
    }
    return true;
}

static void free_items(const struct row *row, void *object)
{
    char *items = *object_items(row, object);
    for (int i = 0; i < *object_count(row, object); i++)
        object_free(row->items, items + (size_t)i * row->items->size);
    free(items);
}

static void free_value(const struct row *row, void *object)
{
    switch (row->type) {
    case VALUE_STRING:
        free(*(char **)value_member(row, object));
        break;
    case VALUE_OPTIONS:
        options_free(row, object);
        break;
    case VALUE_SINK:
        address_free(value_member(row, object));
        break;
    case VALUE_CONTROL:
        address_free(&((struct control_address *)value_member(row, object))->at);
        break;
    case VALUE_HTTP:
        address_free(&((struct http_address *)value_member(row, object))->at);
        break;
    case VALUE_ITEMS:
        free_items(row, object);
        break;
    default:
        break;
    }
}

void object_free(const struct table *table, void *object)
{
    for (int i = 0; i < table->n; i++)
        free_value(&table->rows[i], object);
    if (table->name_max)
        free(*object_name(table, object));
    memset(object, 0, table->size);
}
