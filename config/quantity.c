#include "config/quantity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct unit_name duration_units[] = {{"h", 3600}, {"m", 60}, {"s", 1}, {"ms", 1e-3}, {0}};
const struct unit_name span_units[] = {{"d", 86400}, {"h", 3600},  {"m", 60},
                                       {"s", 1},     {"ms", 1e-3}, {0}};
const struct unit_name size_units[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {0}};

bool number_read(const char *text, size_t n, double *ret)
{
    if (n == 0 || strspn(text, "0123456789+-.eE") < n)
        return false;
    char *end;
    double value = strtod(text, &end);
    if (end != text + n || !isfinite(value))
        return false;
    *ret = value;
    return true;
}

bool whole_read(const char *text, size_t n, int *ret)
{
    const size_t sign = *text == '-', length = n - sign;
    const char *digits = text + sign;
    if (n <= sign || length > 9 || strspn(digits, "0123456789") < length ||
        (*digits == '0' && length > 1))
        return false;
    *ret = (int)strtol(text, NULL, 10);
    return true;
}

const char *quantity_read(const char *text, const struct unit_name *units, double *ret)
{
    const size_t n = strspn(text, "0123456789.");
    double number = 0;
    if (!number_read(text, n, &number))
        return "is not a number with a unit";
    while (units->name && strcmp(units->name, text + n) != 0)
        units++;
    if (!units->name && text[n])
        return "has an unknown unit";
    if (!units->name && number != 0)
        return "has no unit";
    *ret = units->name ? number * units->factor : 0;
    return NULL;
}

// Prints the value in the largest unit that it reaches.
static void print_quantity(FILE *f, double value, const struct unit_name *units)
{
    while (units[1].name && value < units->factor)
        units++;
    if (value == 0)
        fputc('0', f);
    else
        fprintf(f, "%g%s", value / units->factor, units->name);
}

void quantity_print_range(FILE *f, double min, double max, const struct unit_name *units)
{
    print_quantity(f, min, units);
    fputs(" to ", f);
    print_quantity(f, max, units);
    for (const char *before = "; units "; units->name; units++, before = ", ")
        fprintf(f, "%s%s", before, units->name);
}
