#include "config/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/url.h"

static const char HIDDEN[] = "***";

// --- what only YAML tells: texts of several lines, or with escapes

// libyaml counts characters.
static size_t byte_of(const char *text, size_t length, size_t from, size_t characters)
{
    for (; characters > 0 && from < length; characters--)
        do
            from++;
        while (from < length && ((unsigned char)text[from] & 0xc0) == 0x80);
    return from;
}

static bool has_secret(const char *value)
{
    size_t length;
    return config_url_secret(value, value, &length) != NULL;
}

// Overwrites the text from `begin` to `end` with 'x', so that lines stay; the first bytes are ***.
static void blot(char *text, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        if (text[i] != '\n')
            text[i] = i - begin < strlen(HIDDEN) ? '*' : 'x';
}

// Until the text ends or stops being YAML.
static void blot_scalars(char *text, size_t length)
{
    yaml_parser_t parser;
    yaml_event_t event;
    size_t at = 0, at_character = 0;
    bool more = yaml_parser_initialize(&parser);
    char *copy = more ? strndup(text, length) : NULL; // what libyaml reads
    if (copy)
        yaml_parser_set_input_string(&parser, (const unsigned char *)copy, length);
    for (bool goes_on = copy; goes_on && yaml_parser_parse(&parser, &event);) {
        goes_on = event.type != YAML_STREAM_END_EVENT;
        if (event.type == YAML_SCALAR_EVENT) {
            const size_t begin = byte_of(text, length, at, event.start_mark.index - at_character);
            const size_t end =
                byte_of(text, length, begin, event.end_mark.index - event.start_mark.index);
            const bool plain = event.start_mark.line == event.end_mark.line &&
                               !memchr(text + begin, '\\', end - begin);
            if (!plain && has_secret((const char *)event.data.scalar.value))
                blot(text, begin, end);
            at = begin;
            at_character = event.start_mark.index;
        }
        yaml_event_delete(&event);
    }
    free(copy);
    if (more)
        yaml_parser_delete(&parser);
}

// --- line by line

static size_t indent_of(const char *line)
{
    return strspn(line, " \t-?");
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

// "viewer:password" without the rest of a URL.
static bool lacks_scheme(const char *value)
{
    value += strspn(value, " \t\"'");
    return config_url_kind(value) == URL_FILE && config_url_path(value) == value &&
           !strchr("/.$", *value) && strchr(value, ':');
}

static bool is_secret(const char *name, size_t n, const char *value)
{
    return config_name_is_secret(name, n) || (n == 7 && strncmp(name, "webhook", n) == 0) ||
           (n == 3 && strncmp(name, "url", n) == 0 && lacks_scheme(value));
}

// The value of the first key whose name says that it is a secret: what stands behind its colon.
// NULL: there is none.
static char *find_secret_value(char *line)
{
    for (char *colon = strchr(line, ':'); colon; colon = strchr(colon + 1, ':')) {
        char *end = colon;
        while (end > line && strchr(" \t\"'", end[-1]))
            end--;
        char *begin = end;
        while (begin > line && is_name(begin[-1]))
            begin--;
        const size_t n = (size_t)(end - begin);
        if (n > 0 && strncmp(colon, "://", 3) != 0 && is_secret(begin, n, colon + 1))
            return colon + 1;
    }
    return NULL;
}

// Where a value ends that other keys may follow in the line.
static char *end_of_value(char *value)
{
    char *end = value + strspn(value, " \t");
    if (*end == '"' || *end == '\'') {
        char *close = strchr(end + 1, *end);
        return close ? close + 1 : end + strlen(end);
    }
    while (*end && *end != ',' && *end != '}')
        end += strncmp(end, "${", 2) == 0 && strchr(end, '}') ? strcspn(end, "}") + 1 : 1;
    return end;
}

// Whether keys may stand behind others in the line.
static bool has_braces(const char *line)
{
    const char *brace = strchr(line, '{');
    while (brace && brace > line && brace[-1] == '$')
        brace = strchr(brace + 1, '{');
    return brace;
}

// "${NAME}", which says where a secret is.
static bool is_reference(const char *value, const char *end)
{
    value += strspn(value, " \t\"'");
    if (strncmp(value, "${", 2) != 0)
        return false;
    value += 2;
    while (isalnum((unsigned char)*value) || *value == '_')
        value++;
    return *value == '}' && value + 1 + strspn(value + 1, " \t\"'") >= end;
}

// Whether what stands behind "://" may be a user and a password whose end is not in this line.
static bool is_open_url(const char *line)
{
    const char *begin = strstr(line, "://");
    if (!begin || strchr(begin, '@'))
        return false;
    begin += 3;
    const char *colon = begin + strcspn(begin, ":/[");
    if (*colon != ':')
        return false;
    colon += 1 + strspn(colon + 1, "0123456789");
    return *colon && !strchr("/?\"', }\r", *colon);
}

// Prints `n` bytes without what URLs have of secrets.
static void print_urls(FILE *to, const char *text, size_t n)
{
    const size_t size = 4 * n + 1;
    char *part = strndup(text, n), *shown = part ? malloc(size) : NULL;
    if (shown)
        fputs(config_url_redacted(part, shown, size), to);
    free(shown);
    free(part);
}

// Prints the line without its secrets. Returns whether it may end within one.
static bool print_line(FILE *to, char *line)
{
    const bool braces = has_braces(line);
    bool open = false;
    for (char *value, *end; (value = find_secret_value(line)); line = end) {
        end = braces ? end_of_value(value) : value + strlen(value);
        const bool reference = is_reference(value, end);
        if (!reference)
            value += strspn(value, " \t");
        print_urls(to, line, (size_t)(value - line));
        if (reference)
            fprintf(to, "%.*s", (int)(end - value), value);
        else if (value < end)
            fputs(HIDDEN, to);
        open = !reference && !*end;
    }
    if (is_open_url(line)) {
        fprintf(to, "%.*s%s", (int)(strstr(line, "://") + 3 - line), line, HIDDEN);
        return true;
    }
    print_urls(to, line, strlen(line));
    return open;
}

static void print_lines(FILE *to, char *text, size_t length)
{
    bool open = false; // the line before ended within a secret:
    size_t indent = 0; // and began here
    for (char *line = text, *end; line < text + length; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + length - line));
        const bool last = !end;
        if (last)
            end = text + length;
        *end = 0;
        const size_t own = indent_of(line);
        if (open && line[own] && own > indent) {
            fprintf(to, "%.*s%s", (int)own, line, HIDDEN);
        } else if (!open || line[own]) {
            open = print_line(to, line);
            indent = own;
        }
        if (!last)
            fputc('\n', to);
    }
}

char *config_text_redacted(const char *text, size_t length)
{
    char *copy = malloc(length + 1), *ret = NULL;
    size_t size;
    FILE *to = copy ? open_memstream(&ret, &size) : NULL;
    if (to) {
        memcpy(copy, text, length);
        copy[length] = 0;
        for (size_t i = 0; i < length; i++)
            copy[i] = copy[i] ? copy[i] : '?';
        blot_scalars(copy, length);
        print_lines(to, copy, length);
        if (fclose(to) != 0) {
            free(ret);
            ret = NULL;
        }
    }
    free(copy);
    return ret;
}
