#include "config/config.h"

#include <string.h>

#include "config/schema.h"
#include "config/value.h"

// A text with ${NAME} in it, which may become any scalar.
static const char expanded[] = "{\"$ref\": \"#/definitions/expanded\"}";

static void print_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++)
        fprintf(f, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', f);
}

static void print_choices(FILE *f, const struct row *row)
{
    fputs("{\"enum\": [", f);
    for (const struct choice *c = row->choices; c->name; c++)
        fprintf(f, "%s\"%s\"", c == row->choices ? "" : ", ", c->name);
    fputs("]}", f);
}

static void print_number(FILE *f, const struct row *row, const char *type)
{
    fprintf(f, "{\"type\": \"%s\", \"minimum\": %.10g, \"maximum\": %.10g}", type, row->min,
            row->max);
}

static void print_list(FILE *f, const struct row *row, const char *type, int n)
{
    fputs("{\"type\": \"array\", \"items\": {\"anyOf\": [", f);
    print_number(f, row, type);
    fprintf(f, ", %s]}, \"minItems\": %d, \"maxItems\": %d}", expanded, n, n);
}

static void print_one_or_three(FILE *f, const struct row *row, const char *type)
{
    print_number(f, row, type);
    fputs(", ", f);
    print_list(f, row, type, 3);
}

static void print_quantity(FILE *f, const struct row *row, const struct value_unit *units)
{
    const bool zero = row->min == 0; // it needs no unit
    fprintf(f, "%s{\"type\": \"string\", \"pattern\": \"^(%s([0-9]+[.]?[0-9]*|[.][0-9]+)(",
            zero ? "{\"const\": 0}, " : "", zero ? "0|" : "");
    for (const char *before = ""; units->name; units++, before = "|")
        fprintf(f, "%s%s", before, units->name);
    fputs("))$\"}", f);
}

// The schemas that a value may meet, one of them at least.
static void print_forms(FILE *f, const struct row *row)
{
    switch (row->type) {
    case VALUE_BOOL:
        fputs("{\"type\": \"boolean\"}", f);
        break;
    case VALUE_INT:
    case VALUE_NUMBER:
        print_number(f, row, row->type == VALUE_INT ? "integer" : "number");
        break;
    case VALUE_CHOICE:
        print_choices(f, row);
        break;
    case VALUE_DURATION:
        print_quantity(f, row, duration_units);
        break;
    case VALUE_BYTES:
        print_quantity(f, row, size_units);
        break;
    case VALUE_DIMENSIONS:
        fputs("{\"type\": \"string\", \"pattern\": \"^[1-9][0-9]*x[1-9][0-9]*$\"}", f);
        break;
    case VALUE_LEVELS:
        print_one_or_three(f, row, "integer");
        break;
    case VALUE_CHANNELS:
        print_one_or_three(f, row, "number");
        break;
    case VALUE_AFFINE:
        print_list(f, row, "number", 6);
        break;
    case VALUE_CROP:
        print_list(f, row, "integer", 4);
        break;
    case VALUE_FRACTION:
        print_number(f, row, "number");
        fputs(", {\"type\": \"string\", \"pattern\": \"^[0-9.eE+-]+/[0-9.eE+-]+$\"}", f);
        break;
    case VALUE_FILEMODE: // YAML 1.1 reads 0660 as an octal number, YAML 1.2 as a decimal one
        fputs("{\"type\": \"integer\", \"minimum\": 0, \"maximum\": 777}, "
              "{\"type\": \"string\", \"pattern\": \"^0?[0-7]{3}$\"}",
              f);
        break;
    case VALUE_SPLIT:
        fputs("{\"enum\": [0, \"0\"]}, ", f);
        print_quantity(f, row, duration_units);
        fputs(", ", f);
        print_quantity(f, row, size_units);
        break;
    case VALUE_PIN:
        print_number(f, row, "integer");
        fputs(", {\"type\": \"string\", \"pattern\": "
              "\"^(auto|none|[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)$\"}",
              f);
        break;
    case VALUE_SINK:
        fputs("{\"type\": \"string\", \"pattern\": \"^(unix|ring|tcp|file):.\"}", f);
        break;
    case VALUE_CONTROL: // YAML 1.1 reads off as false
        fputs("{\"enum\": [\"auto\", \"off\", false]}, {\"type\": \"string\", \"pattern\": \"/\"}",
              f);
        break;
    case VALUE_HTTP:
        fputs("{\"type\": \"integer\", \"minimum\": 0, \"maximum\": 65535}, "
              "{\"const\": false}, {\"type\": \"string\", \"pattern\": "
              "\"^(off|unix:.+|(.+:)?[0-9]{1,5})$\"}",
              f);
        break;
    case VALUE_OPTIONS:
        fprintf(f,
                "{\"type\": \"object\", \"maxProperties\": %d, \"additionalProperties\": "
                "{\"type\": [\"string\", \"number\", \"boolean\"]}}",
                OPTIONS_MAX);
        break;
    default:
        fputs("{\"type\": \"string\", \"minLength\": 1}", f);
        break;
    }
    if (row->zero)
        fprintf(f, ", {\"const\": \"%s\"}", row->zero);
}

static bool is_bare(const struct row *row)
{
    return row->type != VALUE_FILEMODE && row->type != VALUE_DURATION && row->type != VALUE_BYTES &&
           row->type != VALUE_SPLIT &&
           (row->type == VALUE_BOOL || !row->text[strspn(row->text, "0123456789.-")]);
}

static void print_description(FILE *f, const struct row *row)
{
    fputs("{\"description\": ", f);
    print_string(f, row->help);
    fputs(", ", f);
}

// `other`: a row of the same key that the value may be meant for, or NULL.
static void print_value(FILE *f, const struct row *row, const struct row *other)
{
    print_description(f, row);
    if (row->text && is_bare(row))
        fprintf(f, "\"default\": %s, ", row->text);
    else if (row->text)
        fprintf(f, "\"default\": \"%s\", ", row->text);
    fputs("\"anyOf\": [", f);
    print_forms(f, row);
    if (other && row->type == VALUE_CHOICE) {
        fputs(", ", f);
        print_forms(f, other);
    }
    if (row->type != VALUE_OPTIONS)
        fprintf(f, ", %s", expanded);
    fputs("]}", f);
}

static void print_members(FILE *f, const struct table *const tables[], int n, const char *section,
                          bool defaults, int indent);

static void print_items(FILE *f, const struct row *row, int indent)
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

static void print_property(FILE *f, const struct table *table, const struct row *row, bool defaults,
                           int indent)
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
    if (row->type == VALUE_SECTION)
        print_members(f, &table, 1, row->key, defaults, indent);
    else
        print_members(f, both, 2, "", true, indent);
    fputc('}', f);
}

static void print_required(FILE *f, const struct table *table)
{
    const char *before = ", \"required\": [";
    for (int i = 0; i < table->n; i++) {
        if (table->rows[i].required) {
            fprintf(f, "%s\"%s\"", before, table->rows[i].key);
            before = ", ";
        }
    }
    fputc(']', f);
}

// The keys of one section of `n` tables as the properties of an object. Where two tables have a
// key, the first one's description stands.
static void print_members(FILE *f, const struct table *const tables[], int n, const char *section,
                          bool defaults, int indent)
{
    const char *before = "\n";
    fputs("\"type\": \"object\", \"additionalProperties\": false, \"properties\": {", f);
    for (int t = 0; t < n; t++) {
        for (int i = 0; i < tables[t]->n; i++) {
            const struct row *row = &tables[t]->rows[i];
            if (!row_in_section(row, section) || (defaults && row->own) ||
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
    fputs(
        "{\"$schema\": \"http://json-schema.org/draft-07/schema#\",\n"
        " \"title\": \"framed\",\n"
        " \"definitions\": {\"expanded\": {\"type\": \"string\", \"pattern\": \"\\\\$\\\\{\"}},\n ",
        f);
    print_members(f, root, 1, "", false, 0);
    fputs("}\n", f);
}
