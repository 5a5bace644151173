#include "daemon/cli/camera_lines.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"

// Prints "CAMERA_2_PASSWORD" for "camera-2".
static void print_variable(FILE *to, const char *camera, const char *what)
{
    if (isdigit((unsigned char)*camera))
        putc('_', to);
    for (const char *p = camera; *p; p++)
        putc(isalnum((unsigned char)*p) ? toupper((unsigned char)*p) : '_', to);
    fprintf(to, "_%s", what);
}

enum { SHORTEST_SECRET = 6 }; // bytes of a parameter

// Returns true if the query may contain a secret: "channel=1&subtype=0" has none.
static bool query_is_secret(const char *query)
{
    while ((query = strchr(query, '=')))
        if (strcspn(++query, "&;#") >= SHORTEST_SECRET)
            return true;
    return false;
}

// Prints where the variable for the URL's first secret comes from.
static void print_hint(FILE *to, const struct camera_lines *lines)
{
    size_t length;
    const char *login = config_url_login(lines->url, &length);
    if (lines->clear || (!login && !query_is_secret(config_url_query(lines->url))))
        return;
    fputs("    # ${...} come from the environment, or from credentials of the service:\n"
          "    # LoadCredential=",
          to);
    print_variable(to, lines->name, login ? "PASSWORD" : "SECRET");
    fputs(":FILE by systemctl edit framed\n", to);
}

// Doubles each dollar sign, so that it stands for itself.
static void print_plain(FILE *to, const char *from, const char *end)
{
    for (; from < end; from++)
        fprintf(to, *from == '$' ? "$$" : "%c", *from);
}

// Returns the URL for the lines, without quotes. The caller frees it; NULL: no memory.
static char *url_of(const struct camera_lines *lines)
{
    const char *p = lines->url;
    char *text = NULL;
    size_t size, length;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    const char *login = config_url_login(p, &length), *query = config_url_query(p);
    if (login && !lines->clear) {
        print_plain(to, p, login);
        fputs("${", to);
        print_variable(to, lines->name, "USER");
        if (memchr(login, ':', length)) {
            fputs("}:${", to);
            print_variable(to, lines->name, "PASSWORD");
        }
        putc('}', to);
        p = login + length;
    }
    if (query_is_secret(query) && !lines->clear) {
        print_plain(to, p, query + 1);
        fputs("${", to);
        print_variable(to, lines->name, "SECRET");
        putc('}', to);
        p = query + strlen(query);
    }
    print_plain(to, p, p + strlen(p));
    if (fclose(to) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

// Adds double quotes if a plain scalar might be read as something else.
static void print_scalar(FILE *to, const char *text)
{
    bool quoted = !isalnum((unsigned char)*text) && *text != '/';
    for (const char *p = text; *p; p++)
        quoted |= !isalnum((unsigned char)*p) && !strchr("-._~:/?=&;%+@${}!()", *p);
    quoted |= *text && text[strlen(text) - 1] == ':';
    if (!quoted) {
        fputs(text, to);
        return;
    }
    putc('"', to);
    for (const char *p = text; *p; p++)
        if (iscntrl((unsigned char)*p))
            fprintf(to, "\\x%02x", (unsigned char)*p);
        else
            fprintf(to, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    putc('"', to);
}

char *camera_lines_print(const struct camera_lines *lines)
{
    const char *folder = getenv("RUNTIME_DIRECTORY"); // of the daemon that requests the lines
    char *text = NULL, *url = url_of(lines);
    size_t size;
    FILE *to = url ? open_memstream(&text, &size) : NULL;
    if (to) {
        fprintf(to, "cameras:\n  %s:\n", lines->name);
        print_hint(to, lines);
        fputs("    url: ", to);
        print_scalar(to, url);
        putc('\n', to);
        if (lines->transport && strcmp(lines->transport, "tcp") != 0)
            fprintf(to, "    transport: %s\n", lines->transport);
        if (lines->width > 1920 || lines->height > 1080)
            fprintf(to, "    picture: %dx%d\n", lines->width, lines->height);
        fputs("    outputs:\n      detector:\n", to);
        if (lines->preset)
            fprintf(to, "        preset: %s\n", lines->preset);
        if (lines->size || !lines->preset)
            fprintf(to, "        size: %s\n", lines->size ? lines->size : "640x640");
        fprintf(to, "        sink: unix:%s/%s-detector.sock\n",
                folder && *folder == '/' && !strchr(folder, ':') ? folder : "/run/framed",
                lines->name);
        if (fclose(to) != 0) {
            free(text);
            text = NULL;
        }
    }
    free(url);
    return text;
}
