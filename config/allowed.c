#include "config/allowed.h"

#include <stdio.h>
#include <string.h>

#include "config/value.h"

static void print_quantity(FILE *f, double value, const struct value_unit *units)
{
    if (value == 0) {
        fputc('0', f);
        return;
    }
    while (units[1].name && value < units->factor)
        units++;
    fprintf(f, "%g%s", value / units->factor, units->name);
}

static void print_quantities(FILE *f, double min, double max, const struct value_unit *units)
{
    print_quantity(f, min, units);
    fputs(" to ", f);
    print_quantity(f, max, units);
    for (const char *before = "; units "; units->name; units++, before = ", ")
        fprintf(f, "%s%s", before, units->name);
}

static void print_choices(FILE *f, const struct row *row)
{
    for (const struct choice *c = row->choices; c->name; c++)
        fprintf(f, "%s%s", c == row->choices ? "" : " | ", c->name);
}

static void print_range(FILE *f, const struct row *row)
{
    fprintf(f, "%.10g to %.10g", row->min, row->max);
    if (row->unit)
        fprintf(f, " %s", row->unit);
}

static void print_allowed(FILE *f, const struct row *row)
{
    switch (row->type) {
    case VALUE_BOOL:
        fputs("true | false", f);
        break;
    case VALUE_INT:
    case VALUE_NUMBER:
        print_range(f, row);
        break;
    case VALUE_STRING:
        fputs("text", f);
        break;
    case VALUE_CHOICE:
        print_choices(f, row);
        break;
    case VALUE_DURATION:
        print_quantities(f, row->min, row->max, duration_units);
        break;
    case VALUE_BYTES:
        print_quantities(f, row->min, row->max, size_units);
        break;
    case VALUE_DIMENSIONS:
        fputs("WIDTHxHEIGHT, each ", f);
        print_range(f, row);
        break;
    case VALUE_LEVELS:
    case VALUE_CHANNELS:
        fputs("one or a list of three, ", f);
        print_range(f, row);
        break;
    case VALUE_AFFINE:
        fputs("six numbers, ", f);
        print_range(f, row);
        break;
    case VALUE_CROP:
        fputs("[x, y, width, height] in pixels", f);
        break;
    case VALUE_FRACTION:
        fputs("a number or a fraction like 1/255, ", f);
        print_range(f, row);
        break;
    case VALUE_FILEMODE:
        fputs("octal, 0000 to 0777", f);
        break;
    case VALUE_SPLIT:
        fputs("0, ", f);
        print_quantities(f, row->min, row->max, duration_units);
        fputs("; or ", f);
        print_quantities(f, (double)SPLIT_BYTES_MIN, (double)SPLIT_BYTES_MAX, size_units);
        break;
    case VALUE_PIN:
        fputs("auto | none | numbers ", f);
        print_range(f, row);
        fputs(" and runs like \"0-3,8\"", f);
        break;
    case VALUE_SINK:
        fputs("unix:PATH, ring:PATH, tcp:HOST:PORT, tcp:PORT or file:PATH", f);
        break;
    case VALUE_CONTROL:
        fputs("auto | off | a path", f);
        break;
    case VALUE_HTTP:
        fputs("off, HOST:PORT, PORT (on loopback) or unix:PATH", f);
        break;
    case VALUE_OPTIONS:
        fprintf(f, "up to %d of name: value", OPTIONS_MAX);
        break;
    case VALUE_SECTION:
    case VALUE_DEFAULTS:
        fputs("key: value", f);
        break;
    case VALUE_ITEMS:
        fprintf(f, "1 to %d of name: {...}", row->items->items_max);
        break;
    }
}

char *row_allowed(const struct row *row, char *to, size_t size)
{
    to[0] = 0;
    FILE *f = fmemopen(to, size, "w");
    if (f) {
        if (row->zero)
            fprintf(f, "%s, or ", row->zero);
        print_allowed(f, row);
        fclose(f);
        to[size - 1] = 0;
    }
    return to;
}
