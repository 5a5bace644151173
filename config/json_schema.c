#include "config/print.h"

#include <string.h>

#include "config/schema.h"
#include "config/value.h"

// A text with ${NAME} in it can expand to any value.
static const char expanded[] = "{\"$ref\": \"#/definitions/expanded\"}";

static void print_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++)
        fprintf(f, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', f);
}

static void print_description(FILE *f, const struct config_row *row)
{
    fputs("{\"description\": ", f);
    print_string(f, row->help);
    fputs(", ", f);
}

// `other`: the output's row of the same key, whose values `defaults` accepts too; or NULL.
static void print_value(FILE *f, const struct config_row *row, const struct config_row *other)
{
    print_description(f, row);
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
        fprintf(f, ", %s", expanded);
    fputs("]}", f);
}

static void print_members(FILE *f, const struct table *const tables[], int n, const char *section,
                          bool defaults, int indent);

static void print_items(FILE *f, const struct config_row *row, int indent)
{
    print_description(f, row);
    fprintf(f,
            "\"type\": \"object\", \"minProperties\": 1, \"maxProperties\": %d, "
            "\"additionalProperties\": false, \"patternProperties\": {\"^[A-Za-z0-9_-]{1,%d}$\": ",
            row->items->items_max, row->items->name_max);
    fputc('{', f);
    print_members(f, &row->items, 1, "", false, indent);
    fputs("}}}", f);
}

static void print_property(FILE *f, const struct table *table, const struct config_row *row,
                           bool defaults, int indent)
{
    static const struct table *const both[] = {&camera_table, &output_table};
    fprintf(f, "%*s\"%s\": ", indent, "", row_word(row));
    if (row_has_value(row)) {
        bool shared = defaults && table == both[0];
        print_value(f, row, shared ? table_find(both[1], row->key) : NULL);
        return;
    }
    if (row->type == VALUE_ITEMS) {
        print_items(f, row, indent);
        return;
    }
    print_description(f, row);
    if (row->word)
        fprintf(f, "\"anyOf\": [{\"const\": \"%s\"}, {", row->word);
    if (row->type == VALUE_SECTION)
        print_members(f, &table, 1, row->key, defaults, indent);
    else
        print_members(f, both, 2, "", true, indent);
    fputs(row->word ? "}]}" : "}", f);
}

static void print_required(FILE *f, const struct table *table)
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
static void print_members(FILE *f, const struct table *const tables[], int n, const char *section,
                          bool defaults, int indent)
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
            print_property(f, tables[t], row, defaults, indent + 2);
            before = ",\n";
        }
    }
    fputs("}", f);
    if (!*section && !defaults)
        print_required(f, tables[0]);
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
    print_members(f, root, 1, "", false, 0);
    fputs("}\n", f);
}
