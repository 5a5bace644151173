#include "config/print.h"

#include <string.h>

#include "config/schema.h"

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

static const char *text_of(const struct config_row *row, const struct example *e)
{
    if (e && !strcmp(row->key, "kernel"))
        return row_choice(row, e->kernel);
    if (e && !strcmp(row->key, "sink"))
        return e->sink;
    return row->text ? row->text : row->example;
}

static bool is_shown(const struct config_row *row, const struct example *e)
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
static void print_line(FILE *f, int indent, const char *line, const char *comment)
{
    int column = indent + (int)strlen(line);
    int gap = column < HELP_COLUMN ? HELP_COLUMN - column : 1;
    if (column + gap + (int)strlen(comment) + 2 > COLUMNS_MAX)
        fprintf(f, "%*s# %s\n%*s%s\n", indent, "", comment, indent, "", line);
    else
        fprintf(f, "%*s%s%*s# %s\n", indent, "", line, gap, "", comment);
}

// Prints a key with its default. A key without one is commented out unless it is required.
static void print_value(FILE *f, const struct config_row *row, const struct example *e, int indent)
{
    char allowed[ALLOWED_MAX], line[COLUMNS_MAX], comment[2 * ALLOWED_MAX];
    snprintf(line, sizeof line, "%s%s: %s", row->text || row->required ? "" : "# ", row_word(row),
             text_of(row, e));
    snprintf(comment, sizeof comment, "%s (%s)", row->help,
             row_allowed(row, allowed, sizeof allowed));
    print_line(f, indent, line, comment);
}

static void print_section(FILE *f, const struct config_row *row, int indent)
{
    char line[COLUMNS_MAX];
    snprintf(line, sizeof line, "%s%s:%s%s", row->type == VALUE_DEFAULTS ? "# " : "", row_word(row),
             row->example ? " " : "", row->example ? row->example : "");
    print_line(f, indent, line, row->help);
}

static void print_rows(FILE *f, const struct table *table, const char *section,
                       const struct example *e, int indent);

static void print_items(FILE *f, const struct config_row *row, int indent)
{
    if (row->items == &camera_table) {
        fprintf(f, "%*sgate:\n", indent, "");
        print_rows(f, row->items, "", NULL, indent + INDENT);
        return;
    }
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        if (examples[i].table != row->items)
            continue;
        fprintf(f, "%*s%s:\n", indent, "", examples[i].name);
        print_rows(f, row->items, "", &examples[i], indent + INDENT);
    }
}

static void print_rows(FILE *f, const struct table *table, const char *section,
                       const struct example *e, int indent)
{
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        if (!row_in_section(row, section) || !is_shown(row, e))
            continue;
        if (row_has_value(row))
            print_value(f, row, e, indent);
        else
            print_section(f, row, indent);
        if (row->type == VALUE_SECTION)
            print_rows(f, table, row->key, e, indent + INDENT);
        if (row->type == VALUE_ITEMS)
            print_items(f, row, indent + INDENT);
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
    print_rows(f, &root_table, "", NULL, 0);
}

// --- Markdown

static void print_cell(FILE *f, const char *text)
{
    for (; *text; text++)
        fprintf(f, *text == '|' ? "\\|" : "%c", *text);
}

static void print_key(FILE *f, const struct config_row *row)
{
    char allowed[ALLOWED_MAX];
    fprintf(f, "| `%s`", row->key);
    const struct config_choice *kernel = table_find(&output_table, "kernel")->choices;
    for (; row->kernels && kernel->name; kernel++)
        if (row_is_of(row, (enum kernel)kernel->value))
            fprintf(f, " (%s)", kernel->name);
    fputs(" | ", f);
    print_cell(f, row_allowed(row, allowed, sizeof allowed));
    fprintf(f, " | %s%s%s | ", row->text ? "`" : "",
            row->text       ? row->text
            : row->required ? "required"
                            : "",
            row->text ? "`" : "");
    print_cell(f, row->help);
    fputs(" |\n", f);
}

static void print_keys(FILE *f, const char *title, const struct table *table)
{
    fprintf(f, "%s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", title);
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        if (row->type != VALUE_SECTION &&
            (table == &batch_table ? row->batch : table_has(table, row)))
            print_key(f, row);
    }
}

void config_print_keys(FILE *f)
{
    print_keys(f, "At the top:", &root_table);
    print_keys(f, "\nOf a camera, `cameras.NAME`:", &camera_table);
    print_keys(f, "\nOf an output, `cameras.NAME.outputs.NAME`:", &output_table);
    print_keys(f, "\nOf a batch, `batches.NAME`, beside the keys of an output with kernel warp:",
               &batch_table);
}
