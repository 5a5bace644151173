#include "daemon/bench/json.h"

#include <math.h>

void print_json_string(FILE *to, const char *text)
{
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', to);
        if ((unsigned char)*text < 0x20)
            fprintf(to, "\\u%04x", *text);
        else
            putc(*text, to);
    }
    putc('"', to);
}

void print_json_number(FILE *to, double value)
{
    if (isfinite(value))
        fprintf(to, "%.9g", value);
    else
        fputs("null", to);
}
