#include "config/output_check.h"

#include <assert.h>
#include <stdarg.h>

const struct given *given_of_key(const struct output_check *c, const char *key)
{
    char dotted[KEY_MAX];
    snprintf(dotted, sizeof dotted, "%s%s", c->section, key);
    const struct config_row *row = table_find(&output_table, dotted);
    assert(row);
    return &c->given[row - output_table.rows];
}

bool key_is_given(const struct output_check *c, const char *key)
{
    return given_of_key(c, key)->key.line > 0;
}

bool key_is_wrong(const struct output_check *c, const char *key)
{
    return given_of_key(c, key)->wrong;
}

void refuse_at(const struct output_check *c, struct place at, const char *key, const char *format,
               ...)
{
    char dotted[KEY_MAX], what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(dotted, sizeof dotted, "%s.%s%s", c->path, c->section, key);
    mistake(c->mistakes, at, dotted, "%s", what);
}

struct place place_of_value(const struct output_check *c, const char *key)
{
    return key_is_given(c, key) ? given_of_key(c, key)->value : c->output->place;
}
