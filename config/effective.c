#include "config/effective.h"

#include <errno.h>
#include <string.h>

#include "config/object.h"
#include "config/value.h"

enum { INDENT = 2 };

// Section that the previous rows have opened: "notify.mqtt".
struct section {
    char path[KEY_MAX];
    int indent; // of the table's own keys
};

// Prints the row's sections that are not open yet. Returns the row's indent.
static int open_section(FILE *f, struct section *section, const char *key)
{
    int depth = 0;
    for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.'), depth++) {
        const size_t n = (size_t)(dot - key);
        const char *word = dot;
        if (strncmp(section->path, key, n) == 0 && strchr(".", section->path[n]))
            continue;
        while (word > key && word[-1] != '.')
            word--;
        fprintf(f, "%*s%.*s:\n", section->indent + depth * INDENT, "", (int)(dot - word), word);
    }
    const char *last = strrchr(key, '.');
    snprintf(section->path, sizeof section->path, "%.*s", last ? (int)(last - key) : 0, key);
    return section->indent + depth * INDENT;
}

// Default values, which are not printed, as one object per table; and how secrets are printed.
struct defaults {
    struct config root;
    struct camera_config camera;
    struct output_config output;
    enum secrecy secrets;
};

static const void *default_of(const struct defaults *defaults, const struct table *table)
{
    return table == &root_table     ? (const void *)&defaults->root
           : table == &camera_table ? (const void *)&defaults->camera
                                    : (const void *)&defaults->output;
}

// Returns true for a value that no user can write: the overflow of a copy chosen for auto, and
// times of a gate that is off.
static bool is_automatic(const struct config_row *row, const struct output_config *output)
{
    if (!output)
        return false;
    if (strncmp(row->key, "gate.", 5) == 0)
        return !output->gate.motion && output->gate.change == 0;
    return output->kernel == KERNEL_COPY && output->overflow == OVERFLOW_DROP_OLDEST &&
           strcmp(row->key, "overflow") == 0;
}

static bool is_printed(const struct config_row *row, const struct table *table, const void *object,
                       const struct defaults *defaults)
{
    const struct output_config *output = table_is_of_outputs(table) ? object : NULL;
    return row_has_value(row) && table_has(table, row) && value_is_set(row, object) &&
           (!output || row_is_of(row, output->kernel)) && strcmp(row->key, "preset") != 0 &&
           !is_automatic(row, output) &&
           strcmp(row->key, "cuda.device") != 0 && // the same as devices
           !value_equal(row, default_of(defaults, table), object);
}

// Prints a value made from a reference as it was written, unless secrets are shown.
static void print_value(FILE *f, const struct table *table, const struct config_row *row,
                        const void *object, enum secrecy secrets)
{
    const char *written =
        secrets == SECRETS_HIDDEN ? object_written(table, object, row->key) : NULL;
    if (!written)
        value_print(f, row, object, secrets);
    else if (value_is_list(row) || value_pairs(row))
        fputs(written, f);
    else
        value_print_text(f, written);
}

static void print_values(FILE *f, const struct table *table, const void *object, int indent,
                         const struct defaults *defaults)
{
    struct section section = {.indent = indent};
    const struct config_row *preset = table_find(table, "preset");
    if (table == &camera_table && ((const struct camera_config *)object)->paused.line)
        fprintf(f, "%*s# paused\n", indent, "");
    if (preset && !value_equal(preset, default_of(defaults, table), object)) {
        fprintf(f, "%*s# preset: ", indent, "");
        print_value(f, table, preset, object, defaults->secrets);
        putc('\n', f);
    }
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        if (!is_printed(row, table, object, defaults))
            continue;
        const int own = open_section(f, &section, row->key);
        fprintf(f, "%*s%s: ", own, "", row_word(row));
        print_value(f, table, row, object, defaults->secrets);
        putc('\n', f);
    }
}

static void print_items(FILE *f, const struct table *table, void *owner, int indent,
                        const struct defaults *defaults)
{
    for (int r = 0; r < table->n; r++) {
        const struct config_row *row = &table->rows[r];
        bool any = false;
        if (row->type != VALUE_ITEMS)
            continue;
        char *items = *object_items(row, owner);
        for (int i = 0; i < *object_count(row, owner); i++) {
            void *item = items + (size_t)i * row->items->size;
            if (row->items == &output_table && ((struct output_config *)item)->is_batch)
                continue; // a camera's share of a batch
            if (!any)
                fprintf(f, "%*s%s:\n", indent, "", row->key);
            any = true;
            fprintf(f, "%*s%s:\n", indent + INDENT, "", *object_name(row->items, item));
            print_values(f, row->items, item, indent + 2 * INDENT, defaults);
            print_items(f, row->items, item, indent + 2 * INDENT, defaults);
        }
    }
}

static int open_defaults(struct defaults *defaults, enum secrecy secrets)
{
    *defaults = (struct defaults){.secrets = secrets};
    if (object_init(&root_table, &defaults->root) == 0 &&
        object_init(&camera_table, &defaults->camera) == 0 &&
        object_init(&output_table, &defaults->output) == 0)
        return 0;
    return -ENOMEM;
}

static void close_defaults(struct defaults *defaults)
{
    object_free(&camera_table, &defaults->camera);
    object_free(&output_table, &defaults->output);
    object_free(&root_table, &defaults->root);
}

void config_print_effective(FILE *f, const struct config *config)
{
    struct defaults defaults;
    if (open_defaults(&defaults, SECRETS_HIDDEN) == 0) {
        print_values(f, &root_table, config, 0, &defaults);
        print_items(f, &root_table, (void *)config, 0, &defaults);
    }
    close_defaults(&defaults);
}

void config_print_camera(FILE *f, const struct camera_config *camera)
{
    struct camera_config alone = *camera;
    struct defaults defaults;
    alone.paused = (struct place){0};
    alone.on.n = 0;
    if (open_defaults(&defaults, SECRETS_SHOWN) == 0) {
        fprintf(f, "defaults: none\ncameras:\n%*s%s:\n", INDENT, "", camera->name);
        print_values(f, &camera_table, &alone, 2 * INDENT, &defaults);
        print_items(f, &camera_table, &alone, 2 * INDENT, &defaults);
    }
    close_defaults(&defaults);
}
