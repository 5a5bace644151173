#include "config/object.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"
#include "config/value.h"

char **object_name(const struct table *table, void *object)
{
    return (char **)((char *)object + table->name_offset);
}

struct place *object_place(const struct table *table, void *object)
{
    return (struct place *)((char *)object + table->place_offset);
}

static struct places *object_places(const struct table *table, const void *object)
{
    return (struct places *)((char *)object + table->places_offset);
}

static struct place *value_place(const struct table *table, const void *object,
                                 const struct config_row *row)
{
    return &object_places(table, object)->value[row - table->rows];
}

void object_set_place(const struct table *table, void *object, const struct config_row *row,
                      struct place place)
{
    *value_place(table, object, row) = place;
}

struct place object_value_place(const struct table *table, const void *object, const char *key)
{
    const struct place at = *value_place(table, object, table_find(table, key));
    if (at.line > 0)
        return at;
    return table->name_max ? *object_place(table, (void *)object)
                           : (struct place){.line = 1, .column = 1};
}

static struct written *find_written(const struct places *places, const struct config_row *row)
{
    for (int i = 0; i < places->n_written; i++)
        if (places->written[i].row == row)
            return &places->written[i];
    return NULL;
}

int object_set_written(const struct table *table, void *object, const struct config_row *row,
                       char *text)
{
    struct places *places = object_places(table, object);
    struct written *one = find_written(places, row);
    if (one) {
        free(one->text);
        *one = places->written[--places->n_written];
    }
    if (!text)
        return 0;
    const size_t n = (size_t)places->n_written + 1;
    struct written *grown = reallocarray(places->written, n, sizeof *grown);
    if (!grown) {
        free(text);
        return -ENOMEM;
    }
    places->written = grown;
    grown[places->n_written++] = (struct written){row, text};
    return 0;
}

const char *object_written(const struct table *table, const void *object, const char *key)
{
    const struct written *one = find_written(object_places(table, object), table_find(table, key));
    return one ? one->text : NULL;
}

const char *object_shown(const struct table *table, const void *object, const char *key,
                         const char *value)
{
    const char *written = object_written(table, object, key);
    return written ? written : value;
}

char *config_camera_url(const struct camera_config *camera, char *to, size_t size)
{
    return config_url_shown(object_shown(&camera_table, camera, "url", camera->url), to, size);
}

char *config_sink_url(const struct output_config *output, char *to, size_t size)
{
    return config_url_shown(object_shown(&output_table, output, "sink", output->sink.url), to,
                            size);
}

static void free_written(struct places *places)
{
    for (int i = 0; i < places->n_written; i++)
        free(places->written[i].text);
    free(places->written);
    places->written = NULL;
    places->n_written = 0;
}

static int own_written(struct places *places)
{
    const struct places shared = *places;
    places->n_written = 0;
    places->written =
        shared.n_written ? calloc((size_t)shared.n_written, sizeof *places->written) : NULL;
    if (shared.n_written && !places->written)
        return -ENOMEM;
    for (int i = 0; i < shared.n_written; i++) {
        char *text = strdup(shared.written[i].text);
        if (!text)
            return -ENOMEM;
        places->written[places->n_written++] = (struct written){shared.written[i].row, text};
    }
    return 0;
}

bool object_is_known(const struct table *table, const void *object, const char *key)
{
    return value_place(table, object, table_find(table, key))->line >= 0;
}

void **object_items(const struct config_row *row, void *object)
{
    return (void **)((char *)object + row->offset);
}

int *object_count(const struct config_row *row, void *object)
{
    return (int *)((char *)object + row->count_offset);
}

int object_init(const struct table *table, void *object)
{
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        const char *wrong;
        int status = row->text ? value_parse(row, object, &row->text, 1, &wrong) : 0;
        assert(status != -EINVAL);
        if (status < 0)
            return status;
    }
    return 0;
}

int object_own(const struct table *table, void *object)
{
    int status = own_written(object_places(table, object));
    for (int i = 0; i < table->n; i++) {
        if (row_has_value(&table->rows[i]) && value_own(&table->rows[i], object) < 0)
            status = -ENOMEM;
    }
    return status;
}

static void forget_items(const struct table *table, void *object)
{
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        if (row->type != VALUE_ITEMS)
            continue;
        *object_items(row, object) = NULL;
        *object_count(row, object) = 0;
    }
}

int object_copy_to(const struct table *table, void *to, const void *object)
{
    memcpy(to, object, table->size);
    forget_items(table, to);
    char **name = object_name(table, to);
    *name = strdup(*name);
    if (object_own(table, to) == 0 && *name)
        return 0;
    object_free(table, to);
    return -ENOMEM;
}

void *object_copy(const struct table *table, const void *object)
{
    void *copy = malloc(table->size);
    if (copy && object_copy_to(table, copy, object) == 0)
        return copy;
    free(copy);
    return NULL;
}

bool object_equal(const struct table *table, const void *a, const void *b)
{
    const bool outputs = table_is_of_outputs(table);
    const struct output_config *output = outputs ? a : NULL, *other = outputs ? b : NULL;
    if (outputs && output->is_batch != other->is_batch)
        return false;
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        // Not compared: keys of other kernels or of batches, which `defaults` may set; patterns, as
        // members come and go while the batch stays; `rois`, as each output holds its own;
        // `detections`, as a kept output takes a change over.
        const bool counts =
            row_has_value(row) && row->type != VALUE_NAME_PATTERNS && row->type != VALUE_ROIS &&
            !(outputs && row_is_of_detections(row)) &&
            (!outputs || (row_is_of(row, output->kernel) && (output->is_batch || !row->batch)));
        if (counts && !value_equal(row, a, b))
            return false;
    }
    return true;
}

static void free_items(const struct config_row *row, void *object)
{
    char *items = *object_items(row, object);
    for (int i = 0; i < *object_count(row, object); i++)
        object_free(row->items, items + (size_t)i * row->items->size);
    free(items);
}

void object_free(const struct table *table, void *object)
{
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        if (row_has_value(row))
            value_free(row, object);
        else if (row->type == VALUE_ITEMS)
            free_items(row, object);
    }
    free_written(object_places(table, object));
    if (table->name_max)
        free(*object_name(table, object));
    memset(object, 0, table->size);
}

struct camera_config *config_copy_camera(const struct camera_config *camera)
{
    return object_copy(&camera_table, camera);
}

struct output_config *config_copy_output(const struct output_config *output)
{
    return object_copy(&output_table, output);
}

static void free_copy(const struct table *table, void *object)
{
    if (object)
        object_free(table, object);
    free(object);
}

void config_free_camera(struct camera_config *camera)
{
    free_copy(&camera_table, camera);
}

void config_free_output(struct output_config *output)
{
    free_copy(&output_table, output);
}

static bool row_is_of_notify(const struct config_row *row)
{
    return row_has_value(row) && strncmp(row->key, "notify.", strlen("notify.")) == 0;
}

struct config *config_copy_notify(const struct config *config)
{
    struct config *copy = calloc(1, sizeof *copy);
    int rc = 0;
    if (!copy)
        return NULL;
    copy->notify = config->notify;
    for (int i = 0; i < root_table.n; i++)
        if (row_is_of_notify(&root_table.rows[i]) && value_own(&root_table.rows[i], copy) < 0)
            rc = -ENOMEM;
    if (rc == 0)
        return copy;
    free_copy(&root_table, copy);
    return NULL;
}

bool config_same_notify(const struct config *a, const struct config *b)
{
    bool same = true;
    for (int i = 0; i < root_table.n; i++)
        if (row_is_of_notify(&root_table.rows[i]))
            same &= value_equal(&root_table.rows[i], a, b);
    return same;
}

bool config_same_camera(const struct camera_config *a, const struct camera_config *b)
{
    return !a->paused.line == !b->paused.line && a->generation == b->generation &&
           object_equal(&camera_table, a, b);
}

bool config_same_output(const struct output_config *a, const struct output_config *b)
{
    return object_equal(&output_table, a, b);
}
