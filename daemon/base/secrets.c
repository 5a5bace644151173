#include "daemon/base/log.h"

#include <ctype.h>
#include <errno.h>
#include <libavutil/base64.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"

enum {
    FORMS_MAX = 128,
    SHORT = 4, // bytes: a shorter secret may be part of any word, and is hidden only as a word
    CUT = 3,   // bytes of a secret that are hidden even if the line is cut off after them
};

struct secrets {
    char *form[FORMS_MAX];
    int n;
    bool no_memory;
};

static void add(struct secrets *secrets, const char *text, size_t length)
{
    if (length == 0 || secrets->n == FORMS_MAX)
        return;
    char *form = strndup(text, length);
    secrets->no_memory |= !form;
    if (form)
        secrets->form[secrets->n++] = form;
}

static int hex(char digit)
{
    return isdigit((unsigned char)digit) ? digit - '0' : (digit | 32) - 'a' + 10;
}

// In place. Drops zero bytes. Returns the length.
static size_t decode_percent(char *text)
{
    char *to = text;
    for (const char *p = text; *p; p++) {
        bool escaped = *p == '%' && isxdigit((unsigned char)p[1]) && isxdigit((unsigned char)p[2]);
        int byte = escaped ? 16 * hex(p[1]) + hex(p[2]) : *p;
        p += escaped ? 2 : 0;
        if (byte)
            *to++ = (char)byte;
    }
    *to = 0;
    return (size_t)(to - text);
}

// As in "Authorization: Basic".
static void add_base64(struct secrets *secrets, const char *text, size_t length)
{
    const size_t size = AV_BASE64_SIZE(length);
    char *to = malloc(size);
    secrets->no_memory |= !to;
    if (to && av_base64_encode(to, (int)size, (const uint8_t *)text, (int)length))
        add(secrets, to, strlen(to));
    free(to);
}

// Adds one part of a URL, "user:password" or a value: as written, decoded, and as libav splits it
// if '/' and the like should have been encoded.
static void add_part(struct secrets *secrets, const char *part, size_t length)
{
    char *text = strndup(part, length);
    secrets->no_memory |= !text;
    if (!text)
        return;
    char *password = strchr(text, ':');
    password = password ? password + 1 : text;
    add(secrets, text, length);
    add(secrets, password, strlen(password));
    for (const char *p = password; *p; p += strspn(p, "/?#@")) {
        size_t n = strcspn(p, "/?#@");
        add(secrets, p, n);
        p += n;
    }
    size_t decoded = decode_percent(text);
    add(secrets, text, decoded);
    add_base64(secrets, text, decoded);
    if ((password = strchr(text, ':')))
        add(secrets, password + 1, strlen(password + 1));
    explicit_bzero(text, length);
    free(text);
}

// Adds the value after each '='.
static void add_parameters(struct secrets *secrets, const char *text)
{
    while ((text = strchr(text, '='))) {
        const size_t n = strcspn(++text, "&;#/");
        if (n >= SHORT)
            add_part(secrets, text, n);
    }
}

static void add_url(struct secrets *secrets, const char *url)
{
    size_t length;
    const char *login = config_url_login(url, &length);
    if (login)
        add_part(secrets, login, length);
    if (strstr(url, "://"))
        add_parameters(secrets, login ? login + length : url);
}

int secrets_open(struct secrets **ret, const struct camera_config *camera)
{
    struct secrets *secrets = calloc(1, sizeof *secrets);
    if (!secrets)
        return -ENOMEM;
    add_url(secrets, camera->url);
    for (int i = 0; i < camera->options.n; i++) {
        const char *value = camera->options.list[i].value;
        if (strlen(value) >= SHORT)
            add_part(secrets, value, strlen(value));
        add_url(secrets, value);
    }
    if (secrets->no_memory) {
        secrets_close(secrets);
        return -ENOMEM;
    }
    *ret = secrets;
    return 0;
}

void secrets_close(struct secrets *secrets)
{
    for (int i = 0; secrets && i < secrets->n; i++) {
        explicit_bzero(secrets->form[i], strlen(secrets->form[i]));
        free(secrets->form[i]);
    }
    free(secrets);
}

static bool stands_alone(const char *text, const char *p, size_t length)
{
    return (p == text || !isalnum((unsigned char)p[-1])) && !isalnum((unsigned char)p[length]);
}

// Returns the bytes of the longest secret that begins at `p`. At the end of a line this may be the
// beginning of a secret that was cut off.
static size_t match(const struct secrets *secrets, const char *text, const char *p)
{
    size_t longest = 0, left = strcspn(p, "\r\n");
    for (int i = 0; i < secrets->n; i++) {
        size_t length = strlen(secrets->form[i]);
        bool cut = length > left && left >= CUT;
        length = cut ? left : length;
        if (length > longest && length <= left && !strncasecmp(p, secrets->form[i], length) &&
            (cut || length >= SHORT || stands_alone(text, p, length)))
            longest = length;
    }
    return longest;
}

void secrets_hide(const struct secrets *secrets, char *to, size_t size, const char *from)
{
    const char *hidden = from; // hidden up to here
    size_t n = 0;
    for (const char *p = from; *p && n + sizeof "***" <= size; p++) {
        size_t length = match(secrets, from, p);
        if (length > 0 && p >= hidden)
            n += (size_t)sprintf(to + n, "***");
        hidden = p + length > hidden ? p + length : hidden;
        if (p >= hidden)
            to[n++] = *p;
    }
    to[n] = 0;
}
