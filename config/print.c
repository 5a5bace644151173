#include "config/print.h"

#include <errno.h>
#include <string.h>

#include "config/object.h"
#include "config/schema.h"
#include "config/value.h"

enum { ALLOWED_MAX = 256, HELP_COLUMN = 40, COLUMNS_MAX = 120, INDENT = 2 };

// An output or batch of the example configuration, with the values that are not defaults.
struct example {
    const struct table *table;
    const char *name;
    enum kernel kernel;
    bool all; // every key, else only keys that no other kernel has
    const char *sink;
};

static const struct example examples[] = {
    {&output_table, "detector", KERNEL_WARP, true, "unix:/run/framed/gate-detector.sock"},
    {&output_table, "archive", KERNEL_YUV, false, "file:/var/lib/framed/gate.y4m"},
    {&output_table, "recording", KERNEL_COPY, false, "file:/var/lib/framed/gate-%Y%m%d-%H%M%S.mp4"},
    {&output_table, "scene", KERNEL_STATS, false, "unix:/run/framed/gate-scene.sock"},
    {&batch_table, "detectors", KERNEL_WARP, false, "ring:/run/framed/detectors.ring"},
};

static const char *example_text(const struct config_row *row, const struct example *e)
{
    if (e && !strcmp(row->key, "kernel"))
        return row_choice(row, e->kernel);
    if (e && !strcmp(row->key, "sink"))
        return e->sink;
    return row->text ? row->text : row->example;
}

static bool is_in_example(const struct config_row *row, const struct example *e)
{
    if (!e)
        return true;
    if (e->table == &batch_table)
        return row->batch || !strcmp(row->key, "sink");
    if (!table_has(e->table, row))
        return false;
    if (!row->kernels)
        return e->all || !strcmp(row->key, "kernel") || !strcmp(row->key, "sink");
    const bool of_many = row->kernels & (row->kernels - 1);
    return row_is_of(row, e->kernel) && (e->all || !of_many);
}

// Prints "key: value   # comment", or the comment on a line of its own before a long line.
static void print_example_line(FILE *f, int indent, const char *line, const char *comment)
{
    int column = indent + (int)strlen(line);
    int gap = column < HELP_COLUMN ? HELP_COLUMN - column : 1;
    if (column + gap + (int)strlen(comment) + 2 > COLUMNS_MAX)
        fprintf(f, "%*s# %s\n%*s%s\n", indent, "", comment, indent, "", line);
    else
        fprintf(f, "%*s%s%*s# %s\n", indent, "", line, gap, "", comment);
}

// Prints a key with its default. A key without one is commented out unless it is required.
static void print_example_value(FILE *f, const struct config_row *row, const struct example *e,
                                int indent)
{
    char allowed[ALLOWED_MAX], line[COLUMNS_MAX], comment[2 * ALLOWED_MAX];
    snprintf(line, sizeof line, "%s%s: %s", row->text || row->required ? "" : "# ", row_word(row),
             example_text(row, e));
    snprintf(comment, sizeof comment, "%s (%s)", row->help,
             row_allowed(row, allowed, sizeof allowed));
    print_example_line(f, indent, line, comment);
}

static void print_example_section(FILE *f, const struct config_row *row, int indent)
{
    char line[COLUMNS_MAX];
    snprintf(line, sizeof line, "%s%s:%s%s", row->type == VALUE_DEFAULTS ? "# " : "", row_word(row),
             row->example ? " " : "", row->example ? row->example : "");
    print_example_line(f, indent, line, row->help);
}

static void print_example_rows(FILE *f, const struct table *table, const char *section,
                               const struct example *e, int indent);

static void print_example_items(FILE *f, const struct config_row *row, int indent)
{
    if (row->items == &camera_table) {
        fprintf(f, "%*sgate:\n", indent, "");
        print_example_rows(f, row->items, "", NULL, indent + INDENT);
        return;
    }
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        if (examples[i].table != row->items)
            continue;
        fprintf(f, "%*s%s:\n", indent, "", examples[i].name);
        print_example_rows(f, row->items, "", &examples[i], indent + INDENT);
    }
}

static void print_example_rows(FILE *f, const struct table *table, const char *section,
                               const struct example *e, int indent)
{
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        if (!row_in_section(row, section) || !is_in_example(row, e))
            continue;
        if (row_has_value(row))
            print_example_value(f, row, e, indent);
        else
            print_example_section(f, row, indent);
        if (row->type == VALUE_SECTION)
            print_example_rows(f, table, row->key, e, indent + INDENT);
        if (row->type == VALUE_ITEMS)
            print_example_items(f, row, indent + INDENT);
    }
}

void config_print_defaults(FILE *f)
{
    fputs(
        "# Every key of framed with its default, printed by `framed defaults`. Needed are only a\n"
        "# camera's url and one output with a sink. In any value ${NAME}, ${NAME:-default} and\n"
        "# ${NAME:?message} stand for the credential or environment variable NAME, $$ for a "
        "dollar\n"
        "# sign: url: rtsp://viewer:${GATE_PASSWORD}@192.0.2.10/stream1\n",
        f);
    print_example_rows(f, &root_table, "", NULL, 0);
}

// --- Markdown

static void print_markdown_cell(FILE *f, const char *text)
{
    for (; *text; text++)
        fprintf(f, *text == '|' ? "\\|" : "%c", *text);
}

static void print_markdown_key(FILE *f, const struct config_row *row)
{
    char allowed[ALLOWED_MAX];
    fprintf(f, "| `%s`", row->key);
    const struct config_choice *kernel = table_find(&output_table, "kernel")->choices;
    for (; row->kernels && kernel->name; kernel++)
        if (row_is_of(row, (enum kernel)kernel->value))
            fprintf(f, " (%s)", kernel->name);
    fputs(" | ", f);
    print_markdown_cell(f, row_allowed(row, allowed, sizeof allowed));
    fprintf(f, " | %s%s%s | ", row->text ? "`" : "",
            row->text       ? row->text
            : row->required ? "required"
                            : "",
            row->text ? "`" : "");
    print_markdown_cell(f, row->help);
    fputs(" |\n", f);
}

static void print_markdown_keys(FILE *f, const char *title, const struct table *table)
{
    fprintf(f, "%s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", title);
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        if (row->type != VALUE_SECTION &&
            (table == &batch_table ? row->batch : table_has(table, row)))
            print_markdown_key(f, row);
    }
}

void config_print_keys(FILE *f)
{
    print_markdown_keys(f, "At the top:", &root_table);
    print_markdown_keys(f, "\nOf a camera, `cameras.NAME`:", &camera_table);
    print_markdown_keys(f, "\nOf an output, `cameras.NAME.outputs.NAME`:", &output_table);
    print_markdown_keys(
        f, "\nOf a batch, `batches.NAME`, beside the keys of an output with kernel warp:",
        &batch_table);
}

// --- JSON Schema

// A text with ${NAME} in it can expand to any value.
static const char schema_of_reference[] = "{\"$ref\": \"#/definitions/expanded\"}";

static void print_json_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++)
        fprintf(f, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', f);
}

static void print_schema_description(FILE *f, const struct config_row *row)
{
    fputs("{\"description\": ", f);
    print_json_string(f, row->help);
    fputs(", ", f);
}

// `other`: the output's row of the same key, whose values `defaults` accepts too; or NULL.
static void print_schema_value(FILE *f, const struct config_row *row,
                               const struct config_row *other)
{
    print_schema_description(f, row);
    if (row->text) {
        fputs("\"default\": ", f);
        value_print_default(f, row);
        fputs(", ", f);
    }
    fputs("\"anyOf\": [", f);
    value_print_schemas(f, row);
    if (other && row->type == VALUE_CHOICE) {
        fputs(", ", f);
        value_print_schemas(f, other);
    }
    if (!value_pairs(row))
        fprintf(f, ", %s", schema_of_reference);
    fputs("]}", f);
}

static void print_schema_members(FILE *f, const struct table *const tables[], int n,
                                 const char *section, bool defaults, int indent);

static void print_schema_items(FILE *f, const struct config_row *row, int indent)
{
    print_schema_description(f, row);
    fprintf(f,
            "\"type\": \"object\", \"minProperties\": 1, \"maxProperties\": %d, "
            "\"additionalProperties\": false, \"patternProperties\": {\"^[A-Za-z0-9_-]{1,%d}$\": ",
            row->items->items_max, row->items->name_max);
    fputc('{', f);
    print_schema_members(f, &row->items, 1, "", false, indent);
    fputs("}}}", f);
}

static void print_schema_property(FILE *f, const struct table *table, const struct config_row *row,
                                  bool defaults, int indent)
{
    static const struct table *const both[] = {&camera_table, &output_table};
    fprintf(f, "%*s\"%s\": ", indent, "", row_word(row));
    if (row_has_value(row)) {
        bool shared = defaults && table == both[0];
        print_schema_value(f, row, shared ? table_find(both[1], row->key) : NULL);
        return;
    }
    if (row->type == VALUE_ITEMS) {
        print_schema_items(f, row, indent);
        return;
    }
    print_schema_description(f, row);
    if (row->word)
        fprintf(f, "\"anyOf\": [{\"const\": \"%s\"}, {", row->word);
    if (row->type == VALUE_SECTION)
        print_schema_members(f, &table, 1, row->key, defaults, indent);
    else
        print_schema_members(f, both, 2, "", true, indent);
    fputs(row->word ? "}]}" : "}", f);
}

static void print_schema_required(FILE *f, const struct table *table)
{
    const char *before = ", \"required\": [";
    for (int i = 0; i < table->n; i++) {
        if (table->rows[i].required && table_has(table, &table->rows[i])) {
            fprintf(f, "%s\"%s\"", before, table->rows[i].key);
            before = ", ";
        }
    }
    fputc(']', f);
}

// Prints the keys of one section of `n` tables as the properties of an object. If two tables have a
// key, prints the first table's description.
static void print_schema_members(FILE *f, const struct table *const tables[], int n,
                                 const char *section, bool defaults, int indent)
{
    const char *before = "\n";
    fputs("\"type\": \"object\", \"additionalProperties\": false, \"properties\": {", f);
    for (int t = 0; t < n; t++) {
        for (int i = 0; i < tables[t]->n; i++) {
            const struct config_row *row = &tables[t]->rows[i];
            if (!row_in_section(row, section) || (defaults && row->own) ||
                (!defaults && !table_has(tables[t], row)) ||
                (t > 0 && table_find(tables[0], row->key)))
                continue;
            fputs(before, f);
            print_schema_property(f, tables[t], row, defaults, indent + 2);
            before = ",\n";
        }
    }
    fputs("}", f);
    if (!*section && !defaults)
        print_schema_required(f, tables[0]);
}

void config_print_schema(FILE *f)
{
    static const struct table *const root[] = {&root_table};
    fputs("{\"$schema\": \"http://json-schema.org/draft-07/schema#\",\n"
          " \"title\": \"framed\",\n"
          " \"definitions\": {\"expanded\": {\"type\": \"string\", \"pattern\": \"\\\\$\\\\{\"},\n"
          "  \"pattern\": {\"type\": \"string\", \"pattern\": \"^!?[A-Za-z0-9_*?-]{1,31}$\"},\n"
          "  \"endpoint\": {\"type\": \"string\", \"pattern\": \"^https?://.+:[0-9]+/?$\"},\n"
          "  \"polygon\": {\"type\": \"string\", \"pattern\": \"^ *[0-9]+(( *, *| +)[0-9]+){5,127} "
          "*$\"}},\n ",
          f);
    print_schema_members(f, root, 1, "", false, 0);
    fputs("}\n", f);
}

// --- the effective configuration

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
        return !output->gate.motion;
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
static void print_member(FILE *f, const struct table *table, const struct config_row *row,
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

static void print_members(FILE *f, const struct table *table, const void *object, int indent,
                          const struct defaults *defaults)
{
    struct section section = {.indent = indent};
    const struct config_row *preset = table_find(table, "preset");
    if (table == &camera_table && ((const struct camera_config *)object)->paused.line)
        fprintf(f, "%*s# paused\n", indent, "");
    if (preset && !value_equal(preset, default_of(defaults, table), object)) {
        fprintf(f, "%*s# preset: ", indent, "");
        print_member(f, table, preset, object, defaults->secrets);
        putc('\n', f);
    }
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        if (!is_printed(row, table, object, defaults))
            continue;
        const int own = open_section(f, &section, row->key);
        fprintf(f, "%*s%s: ", own, "", row_word(row));
        print_member(f, table, row, object, defaults->secrets);
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
            print_members(f, row->items, item, indent + 2 * INDENT, defaults);
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
        print_members(f, &root_table, config, 0, &defaults);
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
        print_members(f, &camera_table, &alone, 2 * INDENT, &defaults);
        print_items(f, &camera_table, &alone, 2 * INDENT, &defaults);
    }
    close_defaults(&defaults);
}
