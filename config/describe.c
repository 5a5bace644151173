#include "config/describe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "config/quantity.h"

static void print_choices(FILE *f, const struct config_choice *choices, const char *format,
                          const char *between)
{
    for (const struct config_choice *c = choices; c->name; c++) {
        fputs(c == choices ? "" : between, f);
        fprintf(f, format, c->name);
    }
}

// Prints the schema of a number or, with `n`, of a list of n numbers. Any entry of a list may be a
// text with ${NAME}.
static void print_number(FILE *f, const struct config_row *row, const char *type, int n)
{
    if (n > 0)
        fputs("{\"type\": \"array\", \"items\": {\"anyOf\": [", f);
    fprintf(f, "{\"type\": \"%s\", \"minimum\": %.10g, \"maximum\": %.10g}", type, row->min,
            row->max);
    if (n > 0)
        fprintf(f,
                ", {\"$ref\": \"#/definitions/expanded\"}]}, \"minItems\": %d, \"maxItems\": %d}",
                n, n);
}

// Prints the schema of a quantity, and of a bare 0 if 0 is in range.
static void print_quantity(FILE *f, const struct config_row *row, const struct unit_name *units)
{
    const bool zero = row->min == 0;
    fprintf(f, "%s{\"type\": \"string\", \"pattern\": \"^(%s([0-9]+[.]?[0-9]*|[.][0-9]+)(",
            zero ? "{\"const\": 0}, " : "", zero ? "0|" : "");
    for (const char *before = ""; units->name; units++, before = "|")
        fprintf(f, "%s%s", before, units->name);
    fputs("))$\"}", f);
}

static void print_word(FILE *f, const struct config_row *row, const char *word, int n)
{
    if (!strcmp(word, "range"))
        fprintf(f, row->unit ? "%.10g to %.10g %s" : "%.10g to %.10g", row->min, row->max,
                row->unit);
    else if (!strcmp(word, "choices"))
        print_choices(f, row->choices, "%s", " | ");
    else if (!strcmp(word, "names"))
        print_choices(f, row->choices, "\"%s\"", ", ");
    else if (!strcmp(word, "durations"))
        quantity_print_range(f, row->min, row->max, duration_units);
    else if (!strcmp(word, "spans"))
        quantity_print_range(f, row->min, row->max, span_units);
    else if (!strcmp(word, "sizes"))
        quantity_print_range(f, row->min, row->max, size_units);
    else if (!strcmp(word, "duration"))
        print_quantity(f, row, duration_units);
    else if (!strcmp(word, "span"))
        print_quantity(f, row, span_units);
    else if (!strcmp(word, "size"))
        print_quantity(f, row, size_units);
    else if (!strcmp(word, "integer"))
        print_number(f, row, "integer", n);
    else if (!strcmp(word, "number"))
        print_number(f, row, "number", n);
    else
        assert(!"a word of the table");
}

void describe_print(FILE *f, const struct config_row *row, const char *text)
{
    const char *at;
    for (; (at = strchr(text, '@')); text = at) {
        char word[16] = "";
        int n = 0;
        fwrite(text, 1, (size_t)(at++ - text), f);
        const size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        for (at += length; *at >= '0' && *at <= '9'; at++)
            n = 10 * n + *at - '0';
        print_word(f, row, word, n);
    }
    fputs(text, f);
}
