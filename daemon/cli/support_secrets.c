#include "daemon/cli/support_secrets.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/expand.h"
#include "config/text_list.h"
#include "daemon/base/secrets.h"

enum {
    SHORT = 4, // bytes: what is shorter may be part of any word, and says nothing alone
    WORD = 6,  // bytes of a part of what was hidden, likewise
    NAME_MAX_BYTES = 128,
};

struct support_secrets {
    char **list;
    int n;
};

int support_secrets_open(struct support_secrets **ret)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? 0 : -ENOMEM;
}

void support_secrets_close(struct support_secrets *secrets)
{
    for (int i = 0; secrets && i < secrets->n; i++) {
        explicit_bzero(secrets->list[i], strlen(secrets->list[i]));
        free(secrets->list[i]);
    }
    if (secrets)
        free(secrets->list);
    free(secrets);
}

static int add(struct support_secrets *secrets, const char *text, size_t length)
{
    if (length < SHORT)
        return 0;
    char **list = realloc(secrets->list, (size_t)(secrets->n + 1) * sizeof *list);
    if (!list)
        return -ENOMEM;
    secrets->list = list;
    char *copy = strndup(text, length);
    if (!copy)
        return -ENOMEM;
    // The longest first, so that none is left in part.
    int at = secrets->n++;
    for (; at > 0 && strlen(list[at - 1]) < length; at--)
        list[at] = list[at - 1];
    list[at] = copy;
    return 0;
}

// --- of a configuration

// All forms of a camera's secrets, or of a URL and a password that are given as a camera's.
static int add_camera(struct support_secrets *to, const struct camera_config *camera)
{
    struct secrets *secrets;
    const char *form;
    int rc = secrets_open(&secrets, camera);
    for (int i = 0; rc == 0 && (form = secrets_form(secrets, i)); i++)
        rc = add(to, form, strlen(form));
    if (rc != -ENOMEM)
        secrets_close(secrets);
    return rc;
}

static int add_url(struct support_secrets *to, char *url)
{
    return url ? add_camera(to, &(struct camera_config){.url = url}) : 0;
}

static int add_password(struct support_secrets *to, char *password)
{
    static char name[] = "password", none[] = "";
    struct demuxer_option option = {.name = name, .value = password};
    const struct camera_config camera = {.url = none, .options = {.list = &option, .n = 1}};
    return password ? add_camera(to, &camera) : 0;
}

static int add_outputs(struct support_secrets *to, const struct output_config *outputs, int n)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < n; i++)
        if (outputs[i].sink.kind == SINK_RTSP)
            rc = add_url(to, outputs[i].sink.url);
    return rc;
}

// Whoever knows a webhook's path can post to it.
static int add_webhook(struct support_secrets *to, char *url)
{
    const char *host = url ? strstr(url, "://") : NULL;
    const char *path = host ? strchr(host + 3, '/') : NULL;
    const int rc = add_url(to, url);
    return rc == 0 && path ? add(to, path, strlen(path)) : rc;
}

// Its arguments, each of which may be a secret; the program's name is none.
static int add_arguments(struct support_secrets *to, const struct program *program)
{
    int rc = 0;
    const char *word = text_list_next(&program->list, NULL);
    while (rc == 0 && word && (word = text_list_next(&program->list, word)))
        rc = add(to, word, strlen(word));
    return rc;
}

int support_secrets_of_config(struct support_secrets *to, const struct config *config)
{
    int rc = add_password(to, config->http_token);
    if (rc == 0)
        rc = add_password(to, config->http_read_token);
    if (rc == 0)
        rc = add_webhook(to, config->notify.webhook);
    if (rc == 0)
        rc = add_arguments(to, &config->notify.command);
    if (rc == 0)
        rc = add_password(to, config->notify.mqtt.password);
    if (rc == 0)
        rc = add_password(to, config->cluster.password);
    for (int i = 0; rc == 0 && i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        if (camera->url)
            rc = add_camera(to, camera);
        if (rc == 0)
            rc = add_outputs(to, camera->outputs, camera->n_outputs);
    }
    return rc;
}

// --- of a text

// "${NAME...": what NAME stands for.
static int add_reference(struct support_secrets *to, const char *at)
{
    char reference[NAME_MAX_BYTES], why[256], *value = NULL;
    size_t n = 2;
    while ((isalnum((unsigned char)at[n]) || at[n] == '_') && n < sizeof reference - 2)
        n++;
    snprintf(reference, sizeof reference, "%.*s}", (int)n, at);
    int rc = expand(&value, reference, why, sizeof why);
    if (rc == 0)
        rc = add_password(to, value);
    if (value)
        explicit_bzero(value, strlen(value));
    free(value);
    return rc == -ENOMEM ? rc : 0; // one that is not set is no secret
}

// A word that stands for a user or a protocol, and in many other places: where it is a password,
// the configuration says so.
static bool is_plain_word(const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && islower((unsigned char)text[n]))
        n++;
    return n == length;
}

// What was hidden, and its words: a password between quotes, or behind ":-".
static int add_hidden(struct support_secrets *to, const char *text, size_t length)
{
    static const char between[] = " \t\"'${}:@,&=?/[]";
    int rc = is_plain_word(text, length) ? 0 : add(to, text, length);
    for (size_t at = 0, n; rc == 0 && at < length; at += n + 1) {
        at += text[at] == '-';
        for (n = 0; at + n < length && !strchr(between, text[at + n]);)
            n++;
        if (n >= WORD && !is_plain_word(text + at, n))
            rc = add(to, text + at, n);
    }
    return rc;
}

// Compares a line with what is shown of it: what stands where that has *** was a secret.
static int add_difference(struct support_secrets *to, const char *line, size_t length,
                          const char *shown, size_t shown_length)
{
    const char *end = line + length, *shown_end = shown + shown_length;
    int rc = 0;
    while (rc == 0 && line < end && shown < shown_end) {
        if (*line == *shown && strncmp(shown, "***", 3) != 0) {
            line++;
            shown++;
            continue;
        }
        shown += strspn(shown, "*");
        size_t rest = 0; // of the line, from where both are alike again
        while (shown + rest < shown_end && shown[rest] != '*')
            rest++;
        const char *next = rest > 0 ? memmem(line, (size_t)(end - line), shown, rest) : end;
        rc = add_hidden(to, line, (size_t)((next ? next : end) - line));
        line = next ? next : end;
    }
    return rc;
}

int support_secrets_of_text(struct support_secrets *to, const char *text, const char *redacted)
{
    int rc = 0;
    for (const char *at = text; rc == 0 && (at = strstr(at, "${")); at += 2)
        rc = add_reference(to, at);
    while (rc == 0 && *text && *redacted) {
        const size_t n = strcspn(text, "\n"), shown = strcspn(redacted, "\n");
        char *line = strndup(text, n);
        rc = line ? add_url(to, line) : -ENOMEM; // as it is decoded, too
        free(line);
        if (rc == 0)
            rc = add_difference(to, text, n, redacted, shown);
        text += n + (text[n] == '\n');
        redacted += shown + (redacted[shown] == '\n');
    }
    return rc;
}

// --- hiding

static char *replace(const char *text, const char *secret)
{
    char *ret = NULL;
    size_t size;
    FILE *to = open_memstream(&ret, &size);
    if (!to)
        return NULL;
    for (const char *at; (at = strcasestr(text, secret)); text = at + strlen(secret))
        fprintf(to, "%.*s***", (int)(at - text), text);
    fputs(text, to);
    if (fclose(to) == 0)
        return ret;
    free(ret);
    return NULL;
}

char *support_secrets_hide(const struct support_secrets *secrets, const char *text)
{
    char *hidden = strdup(text);
    for (int i = 0; hidden && i < secrets->n; i++) {
        if (!strcasestr(hidden, secrets->list[i]))
            continue;
        char *next = replace(hidden, secrets->list[i]);
        free(hidden);
        hidden = next;
    }
    return hidden;
}
