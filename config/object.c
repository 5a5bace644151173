#include "config/object.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
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

// Same in new memory, for object_free and then free. NULL: no memory.
static void *object_copy(const struct table *table, const void *object)
{
    void *copy = malloc(table->size);
    if (copy && object_copy_to(table, copy, object) == 0)
        return copy;
    free(copy);
    return NULL;
}

// Returns true for a value of the section `detections`, which may change while its output stays.
static bool row_is_of_detections(const struct config_row *row)
{
    return row_has_value(row) && strncmp(row->key, "detections.", strlen("detections.")) == 0;
}

// Returns true if all values are equal. Items, name and place are not compared.
static bool object_equal(const struct table *table, const void *a, const void *b)
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

// --- presets

struct setting {
    const char *key, *text[3]; // as a user writes it, one text or a list of three
};

// Keys that presets set, with the values of each preset that has no other below. Only presets
// trained with one size set `size` too.
static const struct setting shared_settings[] = {
    {"fit", {"letterbox"}},      {"scaleup", {"true"}},       {"stride", {"32"}},
    {"filter", {"bilinear"}},    {"edge", {"repeat"}},        {"fill", {"114"}},
    {"tensor.dtype", {"f32"}},   {"tensor.layout", {"nchw"}}, {"tensor.order", {"rgb"}},
    {"tensor.scale", {"1/255"}}, {"tensor.mean", {"0"}},      {"tensor.std", {"1"}},
};

enum { SETTINGS_MAX = 5 };

static const struct setting own_settings[][SETTINGS_MAX] = {
    [PRESET_FRAMED] = {{"edge", {"blend"}}, {"tensor.dtype", {"u8"}}, {"tensor.scale", {"1"}}},
    [PRESET_ULTRALYTICS] = {{"fit", {"ultralytics"}}},
    [PRESET_YOLOX] = {{"fit", {"yolox"}}, {"tensor.order", {"bgr"}}, {"tensor.scale", {"1"}}},
    [PRESET_MMDET] = {{"fit", {"mmdet"}},
                      {"tensor.order", {"bgr"}},
                      {"tensor.scale", {"1"}},
                      {"tensor.mean", {"103.53", "116.28", "123.675"}},
                      {"tensor.std", {"57.375", "57.12", "58.395"}}},
    [PRESET_STRETCH] = {{"fit", {"stretch"}}},
    [PRESET_IMAGENET_STRETCH] = {{"fit", {"stretch"}},
                                 {"tensor.mean", {"0.485", "0.456", "0.406"}},
                                 {"tensor.std", {"0.229", "0.224", "0.225"}}},
    [PRESET_OPENCV_BLOB] = {{"fit", {"stretch"}},
                            {"tensor.order", {"bgr"}},
                            {"tensor.scale", {"1"}}},
    [PRESET_ULTRALYTICS_RECT] = {{"fit", {"rect"}}},
    [PRESET_TORCHVISION] = {{"size", {"1333x800"}},
                            {"fit", {"torchvision"}},
                            {"fill", {"mean"}},
                            {"tensor.mean", {"0.485", "0.456", "0.406"}},
                            {"tensor.std", {"0.229", "0.224", "0.225"}}},
    [PRESET_DEEPSTREAM] = {{"fit", {"deepstream"}},
                           {"filter", {"nearest"}},
                           {"fill", {"0"}},
                           {"tensor.scale", {"1"}}},
};

static void set_preset_value(struct output_config *output, const struct setting *setting,
                             const struct given given[])
{
    const struct config_row *row = table_find(&output_table, setting->key);
    const char *wrong;
    if (given && given[row - output_table.rows].key.line)
        return;
    const int status = value_parse(row, output, setting->text, setting->text[1] ? 3 : 1, &wrong);
    assert(status == 0); // none of these values needs memory
    (void)status;
}

static void set_preset_values(struct output_config *output, const struct given given[])
{
    for (size_t i = 0; i < sizeof shared_settings / sizeof *shared_settings; i++)
        set_preset_value(output, &shared_settings[i], given);
    const struct setting *settings = own_settings[output->preset];
    for (int i = 0; i < SETTINGS_MAX && settings[i].key; i++)
        set_preset_value(output, &settings[i], given);
}

void preset_values(struct output_config *output)
{
    set_preset_values(output, NULL);
}

void preset_each(enum preset preset,
                 void (*each)(void *opaque, const char *key, const char *const text[], int n),
                 void *opaque)
{
    for (size_t i = 0; i < sizeof shared_settings / sizeof *shared_settings; i++)
        each(opaque, shared_settings[i].key, shared_settings[i].text,
             shared_settings[i].text[1] ? 3 : 1);
    for (const struct setting *s = own_settings[preset];
         s < own_settings[preset] + SETTINGS_MAX && s->key; s++)
        each(opaque, s->key, s->text, s->text[1] ? 3 : 1);
}

static bool is_given(const struct given given[], const char *key)
{
    return given[table_find(&output_table, key) - output_table.rows].key.line > 0;
}

void preset_apply(struct output_config *output, const struct given given[])
{
    if (is_given(given, "preset"))
        set_preset_values(output, given);
    if (is_given(given, "tiles.size") && !is_given(given, "size") && output->tiles.size)
        output->size = (struct dimensions){output->tiles.size, output->tiles.size};
}

// --- the key detections of an output

struct output_config detections_as_output(const struct output_config *output)
{
    const struct detections_config *detections = &output->detections;
    return (struct output_config){
        .name = output->name,
        .place = output->place,
        .sink = detections->sink,
        .open = detections->open,
        .clients = detections->clients,
        .protocol = PROTOCOL_LINES,
        .segment = detections->segment,
        .keep = detections->keep,
        .mode = detections->mode,
        .group = detections->group,
        .group_id = detections->group_id,
        .has_group_id = detections->has_group_id,
    };
}

bool detections_equal(const struct output_config *a, const struct output_config *b)
{
    for (int i = 0; i < output_table.n; i++)
        if (row_is_of_detections(&output_table.rows[i]) &&
            !value_equal(&output_table.rows[i], a, b))
            return false;
    return true;
}

void detections_free(struct output_config *output)
{
    for (int i = 0; i < output_table.n; i++)
        if (row_is_of_detections(&output_table.rows[i]))
            value_free(&output_table.rows[i], output);
}

int detections_copy(struct output_config *to, const struct output_config *from)
{
    struct output_config copy = {.detections = from->detections};
    int rc = 0;
    for (int i = 0; i < output_table.n; i++) {
        const struct config_row *row = &output_table.rows[i];
        if (row_is_of_detections(row) && value_own(row, &copy) < 0)
            rc = -ENOMEM;
    }
    detections_free(rc == 0 ? to : &copy);
    if (rc == 0)
        to->detections = copy.detections;
    return rc;
}

// --- differences

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
static bool is_own_item(const struct config_row *row, const void *object)
{
    return row->items != &output_table || !((const struct output_config *)object)->is_batch;
}

static const char *find_item(const struct config_row *row, void *owner, const char *name)
{
    const char *items = *object_items(row, owner);
    for (int i = 0; i < *object_count(row, owner); i++) {
        const void *item = items + (size_t)i * row->items->size;
        if (is_own_item(row, item) && strcmp(*object_name(row->items, (void *)item), name) == 0)
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
        if (!is_own_item(row, item))
            continue;
        const void *other = find_item(row, before, name);
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
        if (!is_own_item(row, item) || find_item(row, after, name))
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
