#include "config/reader.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "config/check.h"
#include "config/object.h"
#include "config/url.h"
#include "config/value.h"

// --- keys

static void unknown_key(struct loader *l, int index, const struct mapping *m, const char *key)
{
    static const struct table *const tables[] = {&camera_table, &output_table, &batch_table,
                                                 &root_table};
    struct mistakes *mistakes = &l->reader.mistakes;
    struct place at = reader_place(&l->reader, index);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const struct config_row *row = table_find(tables[i], key);
        if (row && table_has(tables[i], row)) {
            mistake(mistakes, at, l->reader.path, "unknown key here (it is a key of %s)",
                    tables[i]->noun);
            return;
        }
    }
    for (int i = 0; i < m->n && mistakes->n < MISTAKES_MAX; i++) { // further ones are only counted
        const char *nearest = table_nearest(m->targets[i].table, key);
        if (nearest) {
            mistake(mistakes, at, l->reader.path, "unknown key (did you mean %s?)", nearest);
            return;
        }
    }
    mistake(mistakes, at, l->reader.path, "unknown key (`framed defaults` prints all keys)");
}

// Returns a scalar's text, for secret_free; NULL: reading the value will note the mistake.
static char *scalar_text(struct loader *l, const yaml_node_t *node)
{
    const struct expand_options options = {l->reader.references, l->reader.unit, false};
    struct expanded value = {0};
    char why[128];
    if (node->type == YAML_SCALAR_NODE)
        expand_for(&value, (const char *)node->data.scalar.value, &options, why, sizeof why);
    return value.text;
}

static bool is_outside_choices(struct loader *l, const struct config_row *row,
                               const yaml_node_t *node)
{
    char *text = row->type == VALUE_CHOICE ? scalar_text(l, node) : NULL;
    if (!text)
        return false;
    const struct config_choice *c = row->choices;
    while (c->name && strcmp(c->name, text))
        c++;
    secret_free(text);
    return !c->name;
}

// Finds the object that has the key. Under `defaults` both may have it: the camera's counts, unless
// it is a choice and the value is not one of its choices.
static struct target *find_target(struct loader *l, struct mapping *m, const char *key, int index,
                                  const struct config_row **row)
{
    const yaml_node_t *node = reader_node(&l->reader, index);
    struct target *found = NULL;
    for (int i = 0; i < m->n; i++) {
        const struct config_row *one = table_find(m->targets[i].table, key);
        if (!one || (!m->defaults && !table_has(m->targets[i].table, one)) ||
            (found && !is_outside_choices(l, *row, node)))
            continue;
        found = &m->targets[i];
        *row = one;
    }
    return found;
}

bool mapping_is_word(struct loader *l, int index, const struct config_row *row)
{
    const yaml_node_t *node = reader_node(&l->reader, index);
    return row->word && node->type == YAML_SCALAR_NODE &&
           strcmp((const char *)node->data.scalar.value, row->word) == 0;
}

// Reads the word of a section, which stands for one of its keys.
static bool read_word(struct loader *l, int index, const struct config_row *section,
                      struct mapping *m)
{
    static const char *const yes = "true";
    const struct place at = reader_place(&l->reader, index);
    const struct config_row *row = NULL;
    const char *wrong;
    char key[KEY_MAX];
    snprintf(key, sizeof key, "%s.%s", section->key, section->word);
    struct target *target = find_target(l, m, key, index, &row);
    target->given[row - target->table->rows] = (struct given){at, at, index, false};
    object_set_place(target->table, target->object, row, m->defaults ? (struct place){0} : at);
    return value_parse(row, target->object, &yes, 1, &wrong) == 0;
}

static bool read_section(struct loader *l, int index, const struct config_row *row,
                         struct mapping *m)
{
    if (mapping_is_word(l, index, row))
        return read_word(l, index, row, m);
    const yaml_node_t *node = reader_mapping(&l->reader, index, row);
    if (node)
        mapping_read(l, node, m, row->key);
    return node != NULL;
}

// Defaults and items are read later, after all keys beside them.
static bool read_row(struct loader *l, int index, const struct config_row *row,
                     const struct target *target, struct mapping *m)
{
    switch (row->type) {
    case VALUE_SECTION:
        return read_section(l, index, row, m);
    case VALUE_DEFAULTS:
    case VALUE_ITEMS:
        return true;
    default:
        if (!reader_value(&l->reader, index, row, target->object))
            return false;
        l->reader.no_memory |=
            object_set_written(target->table, target->object, row, l->reader.written) < 0;
        return true;
    }
}

// Returns true for keys of the root whose values add up over the files, and `defaults: none`. Any
// other key belongs in the configuration itself.
static bool is_of_drop_ins(struct loader *l, const struct config_row *row, int value)
{
    if (l->assigned && row->items != &camera_table && row->type != VALUE_DEFAULTS)
        return false;
    return row->type == VALUE_ITEMS || row->type == VALUE_NAME_PATTERNS ||
           (row->type == VALUE_DEFAULTS && mapping_is_word(l, value, row));
}

static bool is_gone_value(struct loader *l, int index, const struct gone_key *gone)
{
    char *text = scalar_text(l, reader_node(&l->reader, index));
    const bool is = text && fnmatch(gone->value, text, FNM_CASEFOLD) == 0;
    secret_free(text);
    return is;
}

// Notes a key that is gone, or whose value is gone, and returns true.
static bool note_gone_key(struct loader *l, const yaml_node_pair_t *pair, struct mapping *m,
                          const char *key)
{
    const struct gone_key *gone = NULL;
    for (int i = 0; i < m->n && !gone; i++) {
        struct target *target = &m->targets[i];
        gone = gone_find(target->table, key, NULL);
        while (gone && (gone->rtsp || (gone->value && !is_gone_value(l, pair->value, gone))))
            gone = gone_find(target->table, key, gone);
        if (gone && gone->value)
            target->off |= table_find(target->table, key)->required;
    }
    if (gone && gone_note(l->config, gone, reader_place(&l->reader, pair->key), l->reader.path) < 0)
        l->reader.no_memory = true;
    return gone;
}

// Notes keys gone beside an RTSP URL, once the whole camera, with its URL, is read.
static void note_gone_of_rtsp(struct loader *l, const struct camera_config *camera)
{
    if (!camera->url || config_url_kind(camera->url) != URL_RTSP)
        return;
    for (int i = 0; i < camera_table.n; i++) {
        const struct config_row *row = &camera_table.rows[i];
        const struct gone_key *gone = gone_find(&camera_table, row->key, NULL);
        if (!gone || !gone->rtsp || !value_is_set(row, camera))
            continue;
        const size_t path = reader_enter(&l->reader, row->key);
        const struct place at = object_value_place(&camera_table, camera, row->key);
        l->reader.no_memory |= gone_note(l->config, gone, at, l->reader.path) < 0;
        reader_leave(&l->reader, path);
    }
}

static void read_pair(struct loader *l, const yaml_node_pair_t *pair, struct mapping *m,
                      const char *key)
{
    if (note_gone_key(l, pair, m, key))
        return;
    struct mistakes *mistakes = &l->reader.mistakes;
    struct place at = reader_place(&l->reader, pair->key);
    const struct config_row *row = NULL;
    struct target *target = find_target(l, m, key, pair->value, &row);
    if (!target) {
        unknown_key(l, pair->key, m, key);
        return;
    }
    struct given *given = &target->given[row - target->table->rows];
    if (given->key.line) {
        mistake(mistakes, at, l->reader.path, "is already given in line %d (each key once)",
                given->key.line);
    } else if (m->drop_in && !is_of_drop_ins(l, row, pair->value)) {
        mistake(mistakes, at, l->reader.path,
                l->assigned ? "cannot be set by a cluster (cameras: {NAME: ...})"
                            : "cannot be set in a drop-in file (batches, cameras or paused)");
    } else if (m->defaults && row->own) {
        mistake(mistakes, at, l->reader.path, "cannot be set in defaults (each %s has its own)",
                target->table == &camera_table ? "camera"
                : row->batch                   ? "batch"
                                               : "output");
    } else {
        *given = (struct given){at, reader_place(&l->reader, pair->value), pair->value, false};
        given->wrong = !read_row(l, pair->value, row, target, m);
        object_set_place(target->table, target->object, row,
                         given->wrong  ? (struct place){.line = -1, .column = -1}
                         : m->defaults ? (struct place){0}
                                       : given->value);
    }
}

void mapping_read(struct loader *l, const yaml_node_t *node, struct mapping *m, const char *section)
{
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; pair < node->data.mapping.pairs.top; pair++) {
        const char *word = reader_key(&l->reader, pair->key);
        if (!word)
            continue;
        size_t path = reader_enter(&l->reader, word);
        char key[KEY_MAX];
        snprintf(key, sizeof key, "%s%s%s", section, *section ? "." : "", word);
        read_pair(l, pair, m, key);
        reader_leave(&l->reader, path);
    }
}

// --- named items

static void require_keys(struct loader *l, struct place at, const struct target *target)
{
    for (int i = 0; i < target->table->n; i++) {
        const struct config_row *row = &target->table->rows[i];
        if (!row->required || !table_has(target->table, row) || target->given[i].key.line)
            continue;
        size_t path = reader_enter(&l->reader, row->key);
        mistake(&l->reader.mistakes, at, l->reader.path, "is missing (for example %s: %s)",
                row->key, row->example ? row->example : "{name: {...}}");
        reader_leave(&l->reader, path);
    }
}

static const char *name_wrong(const struct table *table, const char *name)
{
    size_t length = strlen(name);
    if (!length)
        return "has an empty name";
    if (length > (size_t)table->name_max)
        return "has a name that is too long";
    if (strspn(name, NAME_CHARACTERS) != length)
        return "has a name with characters other than letters, digits, _ and -";
    return NULL;
}

// Returns the place of an item with that name, or NULL.
static const struct place *name_place(const struct table *table, const char *name, char *items,
                                      int n)
{
    for (int i = 0; i < n; i++, items += table->size)
        if (!strcmp(*object_name(table, items), name))
            return object_place(table, items);
    return NULL;
}

// Returns false with a mistake noted if the next item cannot have the name at `at`.
static bool check_name(struct loader *l, const struct table *table, const char *name,
                       struct place at, char *items, int n)
{
    const char *wrong = name_wrong(table, name);
    const struct place *before = wrong ? NULL : name_place(table, name, items, n);
    if (wrong)
        mistake(&l->reader.mistakes, at, l->reader.path,
                "%s (1 to %d of A-Z a-z 0-9 _ -, each name once)", wrong, table->name_max);
    else if (before && before->file == at.file)
        mistake(&l->reader.mistakes, at, l->reader.path,
                "has a name that is already given in line %d (each name once)", before->line);
    else if (before)
        mistake(&l->reader.mistakes, at, l->reader.path,
                "has a name that is already given in %s:%d:%d (each name once)",
                config_files_path(&l->config->files, *before), before->line, before->column);
    return !wrong && !before;
}

// Reads a camera, output or batch with its name and defaults set. Returns false to leave it out.
static bool read_item(struct loader *l, int index, const struct config_row *row, void *object)
{
    struct target target = {.table = row->items, .object = object};
    struct mapping m = {.targets = &target, .n = 1};
    const yaml_node_t *node = reader_mapping(&l->reader, index, NULL);
    for (int i = 0; !node && i < row->items->n; i++)
        object_set_place(row->items, object, &row->items->rows[i],
                         (struct place){.line = -1, .column = -1});
    if (!node)
        return true;
    if (row->items == &batch_table)
        ((struct output_config *)object)->is_batch = true;
    mapping_read(l, node, &m, "");
    if (target.off)
        return false;
    if (table_is_of_outputs(row->items))
        preset_apply(object, target.given);
    require_keys(l, *object_place(row->items, object), &target);
    for (int i = 0; i < row->items->n; i++) {
        const struct config_row *inner = &row->items->rows[i];
        if (inner->type == VALUE_ITEMS && target.given[i].key.line) {
            size_t path = reader_enter(&l->reader, inner->key);
            mapping_read_items(l, inner, target.given[i].node, object, &l->output);
            reader_leave(&l->reader, path);
        }
    }
    if (row->items == &camera_table) {
        check_camera(&l->reader.mistakes, object, target.given, l->reader.path);
        note_gone_of_rtsp(l, object);
    }
    if (table_is_of_outputs(row->items))
        check_output(&l->reader.mistakes, l->config, object, target.given, l->reader.path);
    return true;
}

// Returns true if another copy of the defaults fits; else a mistake is noted, once.
static bool has_room_for_copy(struct loader *l, struct place at)
{
    if (l->copied_bytes > COPIED_BYTES_MAX)
        return false;
    l->copied_bytes += l->default_bytes;
    if (l->copied_bytes > COPIED_BYTES_MAX)
        mistake(&l->reader.mistakes, at, "defaults",
                "are too long for so many cameras and outputs (at most %d MiB in all of them)",
                COPIED_BYTES_MAX >> 20);
    return l->copied_bytes <= COPIED_BYTES_MAX;
}

static void add_item(struct loader *l, const yaml_node_pair_t *pair, const struct config_row *row,
                     void *owner, const void *prototype)
{
    const struct table *table = row->items;
    char *items = *object_items(row, owner);
    int *n = object_count(row, owner);
    const char *name = reader_key(&l->reader, pair->key);
    if (!name)
        return;
    size_t path = reader_enter(&l->reader, name);
    void *object = items + (size_t)*n * table->size;
    const bool other = l->assigned && table == &camera_table && strcmp(name, l->assigned) != 0;
    if (other)
        mistake(&l->reader.mistakes, reader_place(&l->reader, pair->key), l->reader.path,
                "is another camera than the document's (cameras: {%s: ...})", l->assigned);
    else if (check_name(l, table, name, reader_place(&l->reader, pair->key), items, *n) &&
             has_room_for_copy(l, reader_place(&l->reader, pair->key))) {
        ++*n;
        memcpy(object, prototype, table->size);
        *object_name(table, object) = strdup(name);
        *object_place(table, object) = reader_place(&l->reader, pair->key);
        if (object_own(table, object) < 0 || !*object_name(table, object))
            l->reader.no_memory = true;
        else if (!read_item(l, pair->value, row, object)) {
            object_free(table, object);
            --*n;
        }
    }
    reader_leave(&l->reader, path);
}

// Cameras may be missing if HTTP clients or a cluster may add them.
bool mapping_may_lack(const struct config *config, const struct config_row *row)
{
    return row->items == &camera_table && (config->http_write || config->cluster.etcd.n > 0);
}

void mapping_read_items(struct loader *l, const struct config_row *row, int index, void *owner,
                        const void *prototype)
{
    const yaml_node_t *node = reader_mapping(&l->reader, index, row);
    if (!node)
        return;
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    ptrdiff_t n = node->data.mapping.pairs.top - pair, all = n + *object_count(row, owner);
    if (n < 1 || all > row->items->items_max) {
        reader_refuse(&l->reader, index, row,
                      n                                  ? "has too many entries"
                      : mapping_may_lack(l->config, row) ? "is empty, and may be left out here"
                                                         : "is empty");
        return;
    }
    void *items = reallocarray(*object_items(row, owner), (size_t)all, row->items->size);
    if (!items) {
        l->reader.no_memory = true;
        return;
    }
    *object_items(row, owner) = items;
    for (; n > 0 && !l->reader.no_memory; n--, pair++)
        add_item(l, pair, row, owner, prototype);
}
