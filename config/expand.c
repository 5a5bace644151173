#include "config/expand.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/url.h"

enum {
    NAME_MAX_BYTES = 128,
    KEPT_SHORTEST = 4, // bytes: a shorter value may be part of any word
    PARAMETER_MIN = 6, // minimum bytes of a URL's parameter to count as a secret
    CUT_MIN = 8,       // minimum bytes of a value cut off by a line's end
    FOLDER_MIN = 8,    // bytes of a folder: a shorter one is part of many paths
    PORT_DIGITS = 5,   // a number this short is a port or a size
};

// --- credentials of the unit

enum { CREDENTIALS_MAX = 1024 }; // of one unit; further ones are ignored

struct credential {
    char *name;
    bool used;
};

struct unit {
    char name[NAME_MAX + 1];     // framed.service, framed@gate.service
    char original[NAME_MAX + 1]; // the template of the instance, or the same name
    struct credential list[CREDENTIALS_MAX];
    int n;
    bool no_memory;
};

static struct credential *find_credential(struct unit *unit, const char *name)
{
    for (int i = 0; i < unit->n; i++)
        if (strcmp(unit->list[i].name, name) == 0)
            return &unit->list[i];
    return NULL;
}

// `text` is "NAME", "NAME:PATH" or "NAME:VALUE".
static void add_credential(struct unit *unit, const char *text)
{
    char *name = strndup(text, strcspn(text, ": \t\n"));
    if (!name) {
        unit->no_memory = true;
    } else if (!*name || unit->n == CREDENTIALS_MAX || find_credential(unit, name)) {
        free(name);
    } else {
        unit->list[unit->n++].name = name;
    }
}

static void read_unit_file(struct unit *unit, const char *path)
{
    static const char *const keys[] = {
        "LoadCredential=", "LoadCredentialEncrypted=", "SetCredential=", "SetCredentialEncrypted="};
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");
    while (file && getline(&line, &size, file) > 0) {
        const char *text = line + strspn(line, " \t");
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strncmp(text, keys[i], strlen(keys[i])) == 0)
                add_credential(unit, text + strlen(keys[i]));
    }
    if (file)
        fclose(file);
    if (line)
        explicit_bzero(line, size); // SetCredential= holds the secret itself
    free(line);
}

static void read_unit(struct unit *unit, const char *folder, const char *name)
{
    char path[PATH_MAX];
    glob_t drop_ins;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    read_unit_file(unit, path);
    snprintf(path, sizeof path, "%s/%s.d/*.conf", folder, name);
    if (glob(path, 0, NULL, &drop_ins) == 0) {
        for (size_t i = 0; i < drop_ins.gl_pathc; i++)
            read_unit_file(unit, drop_ins.gl_pathv[i]);
        globfree(&drop_ins);
    }
}

static void read_folder(struct unit *unit, const char *folder)
{
    read_unit(unit, folder, unit->name);
    if (strcmp(unit->original, unit->name) != 0)
        read_unit(unit, folder, unit->original);
}

// As in systemd.unit(5): a SYSTEMD_UNIT_PATH that ends in a colon comes before the usual folders.
static void read_folders(struct unit *unit)
{
    static const char *const usual[] = {"/etc/systemd/system", "/run/systemd/system",
                                        "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
                                        "/lib/systemd/system"};
    const char *path = getenv("SYSTEMD_UNIT_PATH");
    char folder[PATH_MAX];
    while (path && *path) {
        const size_t n = strcspn(path, ":");
        snprintf(folder, sizeof folder, "%.*s", (int)n, path);
        read_folder(unit, folder);
        if (!path[n])
            return;
        path += n + 1;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        read_folder(unit, usual[i]);
}

static void set_names(struct unit *unit, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t n = strcspn(name, ".");
    if (strncmp(name, "framed.", strlen("framed.")) == 0) {
        strcpy(unit->name, "framed.service");
        strcpy(unit->original, unit->name);
    } else {
        snprintf(unit->name, sizeof unit->name, "framed@%.*s.service", (int)n, name);
        strcpy(unit->original, "framed@.service");
    }
}

int unit_open(struct unit **ret, const char *path)
{
    struct unit *unit = calloc(1, sizeof *unit);
    if (!unit)
        return -ENOMEM;
    set_names(unit, path);
    read_folders(unit);
    if (unit->no_memory) {
        unit_close(unit);
        return -ENOMEM;
    }
    *ret = unit;
    return 0;
}

// Returns true if the unit has that credential, which then counts as used. NULL: no unit, so false.
static bool unit_has_credential(struct unit *unit, const char *name)
{
    struct credential *found = unit ? find_credential(unit, name) : NULL;
    if (found)
        found->used = true;
    return found;
}

void unit_print_used(const struct unit *unit, FILE *f)
{
    bool any = false;
    for (int i = 0; i < unit->n; i++) {
        if (!unit->list[i].used)
            continue;
        if (!any)
            fprintf(f, "credentials that only %s can read count as set:", unit->name);
        fprintf(f, "%s %s", any ? "," : "", unit->list[i].name);
        any = true;
    }
    if (any)
        fputc('\n', f);
}

void unit_close(struct unit *unit)
{
    for (int i = 0; unit && i < unit->n; i++)
        free(unit->list[i].name);
    free(unit);
}

// --- values that must not be shown

void secret_free(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

struct kept {
    char *name, *value; // name NULL: a literal secret
    size_t length;
};

static struct {
    pthread_rwlock_t lock;
    struct kept *list; // by the first byte, then the longest first
    int n, size;
    int end[256]; // of the values that begin with this byte or a lower one
} kept = {.lock = PTHREAD_RWLOCK_INITIALIZER};

// Returns the index of the first value that begins with this byte.
static int begin_of_kept(unsigned char byte)
{
    return byte > 0 ? kept.end[byte - 1] : 0;
}

static bool is_kept(const char *name, const char *value)
{
    const unsigned char byte = (unsigned char)*value;
    for (int i = begin_of_kept(byte); i < kept.end[byte]; i++)
        if (strcmp(kept.list[i].value, value) == 0 && !name == !kept.list[i].name)
            return true;
    return false;
}

static int grow_kept(void)
{
    if (kept.n < kept.size)
        return 0;
    const int size = kept.size ? 2 * kept.size : 64;
    struct kept *grown = reallocarray(kept.list, (size_t)size, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    kept.list = grown;
    kept.size = size;
    return 0;
}

// Returns 1 if the list has taken `one` and its texts; 0 if it has the value already; or -ENOMEM.
static int insert_kept(struct kept one)
{
    const unsigned char byte = (unsigned char)*one.value;
    int at = begin_of_kept(byte);
    if (is_kept(one.name, one.value))
        return 0;
    if (grow_kept() < 0)
        return -ENOMEM;
    while (at < kept.end[byte] && kept.list[at].length >= one.length)
        at++;
    memmove(&kept.list[at + 1], &kept.list[at], (size_t)(kept.n++ - at) * sizeof one);
    kept.list[at] = one;
    for (int i = byte; i < 256; i++)
        kept.end[i]++;
    return 1;
}

static int keep_bytes(const char *name, const char *value, size_t length)
{
    if (length < KEPT_SHORTEST || (length <= PORT_DIGITS && strspn(value, "0123456789") >= length))
        return 0;
    struct kept one = {name ? strdup(name) : NULL, strndup(value, length), length};
    int rc = -ENOMEM;
    if ((!name || one.name) && one.value) {
        pthread_rwlock_wrlock(&kept.lock);
        rc = insert_kept(one);
        pthread_rwlock_unlock(&kept.lock);
    }
    if (rc <= 0) {
        free(one.name);
        secret_free(one.value);
    }
    return rc < 0 ? rc : 0;
}

// Keeps the login, the password and the parameters of a URL.
static int keep_url(const char *name, const char *url)
{
    size_t length;
    const char *login = config_url_login(url, &length);
    const char *colon = login && length > 0 ? memchr(login, ':', length - 1) : NULL;
    int rc = colon ? keep_bytes(name, login, length) : 0;
    if (rc == 0 && colon)
        rc = keep_bytes(name, colon + 1, length - (size_t)(colon + 1 - login));
    for (const char *at = config_url_query(url); rc == 0 && (at = strchr(at, '='));) {
        const size_t n = strcspn(++at, "&;#");
        if (n >= PARAMETER_MIN)
            rc = keep_bytes(name, at, n);
    }
    return rc;
}

// Cameras and libraries also print parts of a URL alone.
static int keep_parts_of_url(const char *name, const char *url, const char *host)
{
    const char *path = strchr(host, '/');
    int rc = path ? keep_bytes(name, path, strlen(path)) : 0;
    if (rc == 0 && path)
        rc = keep_bytes(name, path, strcspn(path, "?#"));
    return rc == 0 ? keep_url(name, url) : rc;
}

// Messages have a path without "file:" and the like, or its folder alone.
static int keep_parts_of_path(const char *name, const char *value)
{
    const char *colon = strchr(value, ':'), *path = colon ? colon + 1 : value;
    const char *slash = strrchr(path, '/');
    const int rc = keep_bytes(name, path, strlen(path));
    return rc == 0 && slash && slash - path >= FOLDER_MIN
               ? keep_bytes(name, path, (size_t)(slash - path))
               : rc;
}

static int keep_value(const char *name, const char *value)
{
    const char *host = strstr(value, "://");
    const int rc = keep_bytes(name, value, strlen(value));
    if (rc < 0)
        return rc;
    return host ? keep_parts_of_url(name, value, host + 3) : keep_parts_of_path(name, value);
}

int expand_keep_literal(const char *secret)
{
    return keep_bytes(NULL, secret, strlen(secret));
}

int expand_keep_literal_url(const char *url)
{
    return keep_url(NULL, url);
}

// Returns the longest kept value that begins at `p`, and in *length the number of its bytes there:
// the line's end, `end`, may have cut it.
static const struct kept *find_kept(const char *p, const char *end, bool literals, size_t *length)
{
    const unsigned char byte = (unsigned char)*p;
    const size_t left = (size_t)(end - p);
    for (int i = begin_of_kept(byte); i < kept.end[byte]; i++) {
        const struct kept *one = &kept.list[i];
        const bool cut = left >= CUT_MIN && left < one->length && memcmp(p, one->value, left) == 0;
        *length = cut ? left : one->length;
        if ((literals || one->name) && (cut || strncmp(p, one->value, one->length) == 0))
            return one;
    }
    *length = 1;
    return NULL;
}

char *expand_hide(char *to, size_t size, const char *from, bool literals)
{
    const char *end = from;
    size_t n = 0, length;
    pthread_rwlock_rdlock(&kept.lock);
    for (const char *p = from; *p && n + 1 < size; p += length) {
        if (p >= end)
            end = p + 1 + strcspn(p + 1, "\r\n");
        const struct kept *found = find_kept(p, end, literals, &length);
        if (!found)
            to[n++] = *p;
        else
            n += (size_t)snprintf(to + n, size - n, found->name ? "${%s}" : "***", found->name);
    }
    pthread_rwlock_unlock(&kept.lock);
    to[n < size ? n : size - 1] = 0;
    return to;
}

// --- expansion

// One expansion in progress.
struct expansion {
    char out[EXPANDED_MAX + 1], value[EXPANDED_MAX + 2];
    size_t n;
    char *why;
    size_t why_size;
    const struct expand_options *options;
    bool any, unknown; // see struct expanded
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
    if (n > EXPANDED_MAX - e->n)
        return expand_fail(e, "too long (at most %d bytes)", EXPANDED_MAX);
    memcpy(e->out + e->n, text, n);
    e->n += n;
    return 0;
}

// Reads the credential into e->value. Returns 1; 0 if there is none; or -EINVAL.
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
    e->value[n] = 0;
    if (n > EXPANDED_MAX || strlen(e->value) != (size_t)n)
        return expand_fail(e, "credential %s is not a text of at most %d bytes", name,
                           EXPANDED_MAX);
    return 1;
}

static int read_variable(struct expansion *e, const char *name)
{
    const char *value = getenv(name);
    if (value && snprintf(e->value, sizeof e->value, "%s", value) >= (int)sizeof e->value)
        return expand_fail(e, "%s is too long (at most %d bytes)", name, EXPANDED_MAX);
    return value != NULL;
}

// Reads the value of `name` into e->value. Returns 1; 0 if it is not set; or a negative errno.
static int look_up_name(struct expansion *e, const char *name)
{
    int status = read_credential(e, name);
    if (status == 0)
        status = read_variable(e, name);
    size_t n = status > 0 ? strlen(e->value) : 0;
    if (n > 0 && e->value[n - 1] == '\n') {
        e->value[--n] = 0;
        if (n > 0 && e->value[n - 1] == '\r')
            e->value[n - 1] = 0;
    }
    if (status > 0 && e->options->secret && keep_value(name, e->value) < 0)
        return -ENOMEM;
    return status;
}

// Appends the value of a reference: `length` bytes, without the braces.
static int expand_reference(struct expansion *e, const char *reference, size_t length)
{
    char name[NAME_MAX_BYTES + 1];
    size_t n = strspn(reference, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    char op = n + 1 < length && reference[n] == ':' ? reference[n + 1] : 0;
    const char *operand = reference + n + 2;
    if (!n || n > NAME_MAX_BYTES || (reference[0] >= '0' && reference[0] <= '9'))
        return expand_fail(e, "has a ${ without a name (letters, digits and _)");
    if (n != length && op != '-' && op != '?')
        return expand_fail(
            e, "has a malformed ${...} (${NAME}, ${NAME:-default} or ${NAME:?message})");
    memcpy(name, reference, n);
    name[n] = 0;
    e->any = true;
    const enum references references = e->options->references;
    if (references == REFERENCES_REFUSED)
        return expand_fail(
            e, "has a ${...}, which is not looked up in a camera of the cluster ($$ for a dollar "
               "sign)");
    int status = e->own || references == REFERENCES_OPAQUE ? 0 : look_up_name(e, name);
    if (status < 0)
        return status;
    if (status > 0 && (*e->value || !op))
        return append_text(e, e->value, strlen(e->value));
    if (references == REFERENCES_OPAQUE || unit_has_credential(e->options->unit, name)) {
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

static int run_expansion(struct expanded *ret, const char *text,
                         const struct expand_options *options, bool own, char *why, size_t size)
{
    struct expansion *e = calloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    e->why = why;
    e->why_size = size;
    e->options = options;
    e->own = own;
    int status = expand_text(e, text);
    *ret = (struct expanded){.any = e->any, .unknown = e->unknown};
    if (!status && !(ret->text = strndup(e->out, e->n)))
        status = -ENOMEM;
    explicit_bzero(e, sizeof *e);
    free(e);
    return status;
}

int expand_for(struct expanded *ret, const char *text, const struct expand_options *options,
               char *why, size_t size)
{
    return run_expansion(ret, text, options, false, why, size);
}

int expand(char **ret, const char *text, char *why, size_t size)
{
    struct expanded expanded;
    int status = expand_for(&expanded, text, &(struct expand_options){0}, why, size);
    *ret = expanded.text;
    return status;
}

int expand_own(char **ret, const char *text)
{
    char why[256];
    struct expanded expanded;
    int status = run_expansion(&expanded, text, &(struct expand_options){0}, true, why, sizeof why);
    *ret = expanded.text;
    return status;
}

char *expand_without_defaults(const char *text)
{
    char *ret = malloc(4 * strlen(text) + 1), *to = ret;
    while (ret && *text) {
        const char *end = strncmp(text, "${", 2) == 0 ? strchr(text, '}') : NULL;
        const char *op = end ? memchr(text, ':', (size_t)(end - text)) : NULL;
        const bool doubled = strncmp(text, "$$", 2) == 0;
        if (op && end - op > 2) {
            to = mempcpy(to, text, (size_t)(op + 2 - text));
            to = mempcpy(to, "***", 3);
            text = end;
        }
        for (int i = 0; i <= doubled && *text; i++)
            *to++ = *text++;
    }
    if (ret)
        *to = 0;
    return ret;
}
