#include "config/expand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/mistakes.h"

enum { NAME_MAX_BYTES = 128 };

// One expansion in progress.
struct expansion {
    char out[TEXT_MAX + 1], value[TEXT_MAX + 2];
    size_t n;
    char *why;
    size_t why_size;
    struct unit *unit; // NULL: none
    bool unknown;      // the text contains a value that only the unit can read
    bool own;          // no value is looked up
};

__attribute__((format(printf, 2, 3))) static int expand_fail(struct expansion *e,
                                                             const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->why, e->why_size, format, args);
    va_end(args);
    return -EINVAL;
}

static int append_text(struct expansion *e, const char *text, size_t n)
{
    if (n > TEXT_MAX - e->n)
        return expand_fail(e, "too long (at most %d bytes)", TEXT_MAX);
    memcpy(e->out + e->n, text, n);
    e->n += n;
    return 0;
}

// Reads the credential into e->value. 1: read; 0: there is none; -EINVAL.
static int read_credential(struct expansion *e, const char *name)
{
    char path[4096];
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    if (!folder || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0;
    ssize_t n = fd < 0 ? -1 : read(fd, e->value, sizeof e->value - 1);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return expand_fail(e, "credential %s cannot be read: %s", name, strerror(error));
    if (n > 0 && e->value[n - 1] == '\n')
        n--;
    e->value[n] = 0;
    if (n > TEXT_MAX || strlen(e->value) != (size_t)n)
        return expand_fail(e, "credential %s is not a text of at most %d bytes", name, TEXT_MAX);
    return 1;
}

// Points *ret at the value of `name`, or at NULL.
static int look_up_name(struct expansion *e, const char *name, const char **ret)
{
    int status = e->own ? 0 : read_credential(e, name);
    *ret = e->own ? NULL : status > 0 ? e->value : status == 0 ? getenv(name) : NULL;
    return status < 0 ? status : 0;
}

// Appends the value of the `length` bytes between the braces.
static int expand_reference(struct expansion *e, const char *reference, size_t length)
{
    char name[NAME_MAX_BYTES + 1];
    size_t n = strspn(reference, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    char op = n + 1 < length && reference[n] == ':' ? reference[n + 1] : 0;
    const char *operand = reference + n + 2, *value;
    if (!n || n > NAME_MAX_BYTES || (reference[0] >= '0' && reference[0] <= '9'))
        return expand_fail(e, "has a ${ without a name (letters, digits and _)");
    if (n != length && op != '-' && op != '?')
        return expand_fail(
            e, "has a malformed ${...} (${NAME}, ${NAME:-default} or ${NAME:?message})");
    memcpy(name, reference, n);
    name[n] = 0;
    int status = look_up_name(e, name, &value);
    if (status < 0)
        return status;
    if (value && (*value || !op))
        return append_text(e, value, strlen(value));
    if (unit_has_credential(e->unit, name)) {
        e->unknown = true;
        return append_text(e, "x", 1);
    }
    if (op == '-')
        return append_text(e, operand, length - n - 2);
    if (e->own)
        return 0;
    if (op == '?') {
        char message[256];
        snprintf(e->value, sizeof e->value, "%.*s", (int)(length - n - 2), operand);
        return expand_fail(e, "%s: %s", name, shown(e->value, message, sizeof message));
    }
    return expand_fail(
        e, "%s is not set (a credential, an environment variable, or ${%s:-default})", name, name);
}

static int expand_text(struct expansion *e, const char *text)
{
    int status = 0;
    while (*text && !status) {
        size_t plain = strcspn(text, "$");
        status = append_text(e, text, plain);
        text += plain;
        if (status || !*text)
            return status;
        const char *end = text[1] == '{' ? strchr(text, '}') : NULL;
        if (text[1] == '$') {
            status = append_text(e, "$", 1);
            text += 2;
        } else if (!end) {
            return expand_fail(e, "has a lone $ (${NAME}, or $$ for a dollar sign)");
        } else if (memmem(text + 2, (size_t)(end - text - 2), "${", 2)) {
            return expand_fail(e, "has a ${...} inside another (side by side is fine)");
        } else {
            status = expand_reference(e, text + 2, (size_t)(end - text - 2));
            text = end + 1;
        }
    }
    return status;
}

// Hands the text over and frees the rest, with every secret wiped.
static int finish_expansion(struct expansion *e, int status, char **ret)
{
    if (!status && !(*ret = strndup(e->out, e->n)))
        status = -ENOMEM;
    explicit_bzero(e, sizeof *e);
    free(e);
    return status;
}

int expand_for(char **ret, const char *text, struct unit *unit, bool *unknown, char *why,
               size_t size)
{
    struct expansion *e = calloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    e->why = why;
    e->why_size = size;
    e->unit = unit;
    int status = expand_text(e, text);
    *unknown = e->unknown;
    return finish_expansion(e, status, ret);
}

int expand(char **ret, const char *text, char *why, size_t size)
{
    bool unknown;
    return expand_for(ret, text, NULL, &unknown, why, size);
}

int expand_own(char **ret, const char *text)
{
    char why[256];
    struct expansion *e = calloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    e->why = why;
    e->why_size = sizeof why;
    e->own = true;
    return finish_expansion(e, expand_text(e, text), ret);
}
