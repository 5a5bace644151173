#include "config/types.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/image.h"

// --- numbers

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

// --- lists of texts

// Returns 0 or -ENOMEM.
static int text_list_open(struct text_list *list, const char *const text[], int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += strlen(text[i]) + 1;
    char *to = list->text = malloc(bytes);
    if (!to)
        return -ENOMEM;
    list->bytes = bytes;
    for (int i = 0; i < n; i++)
        to = stpcpy(to, text[i]) + 1;
    return 0;
}

int text_list_copy(struct text_list *list, const struct text_list *from)
{
    *list = (struct text_list){0};
    if (from->bytes == 0)
        return 0;
    list->text = malloc(from->bytes);
    if (!list->text)
        return -ENOMEM;
    memcpy(list->text, from->text, from->bytes);
    list->bytes = from->bytes;
    return 0;
}

void text_list_free(struct text_list *list)
{
    if (list->text)
        explicit_bzero(list->text, list->bytes);
    free(list->text);
    *list = (struct text_list){0};
}

bool text_list_equal(const struct text_list *a, const struct text_list *b)
{
    return a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->text, b->text, a->bytes) == 0);
}

const char *text_list_next(const struct text_list *list, const char *text)
{
    const char *next = text ? text + strlen(text) + 1 : list->text;
    return next && next < list->text + list->bytes ? next : NULL;
}

// --- labels

int labels_parse(struct labels *ret, const char *const text[], int n, const char **wrong)
{
    if (n == 1 && text[0][0] && strchr("/.~", text[0][0])) {
        *wrong = "is a path, but the labels themselves stand here";
        return -EINVAL;
    }
    for (int i = 0; i < n; i++) {
        const size_t length = strlen(text[i]);
        if (length == 0 || length > LABEL_MAX) {
            *wrong = length ? "has a label that is too long" : "has an empty label";
            return -EINVAL;
        }
    }
    return text_list_open(&ret->list, text, n);
}

int labels_find(const struct labels *labels, const char *wanted)
{
    int i = 0;
    for (const char *label = NULL; (label = text_list_next(&labels->list, label)); i++)
        if (strcmp(label, wanted) == 0)
            return i;
    return -1;
}

// --- commands

enum { PROGRAM_BYTES_MAX = 4096 };

int program_parse(struct program *ret, const char *const text[], int n, const char **wrong)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += strlen(text[i]) + 1;
    *wrong = n > 0 && !text[0][0]         ? "names no program"
             : bytes > PROGRAM_BYTES_MAX  ? "is too long"
             : n > 1 && text[0][0] != '/' ? "does not begin with the absolute path of a program"
                                          : NULL;
    return *wrong ? -EINVAL : text_list_open(&ret->list, text, n);
}

void program_arguments(const struct program *program, char *argv[PROGRAM_MAX + 3])
{
    static char shell[] = "/bin/sh", option[] = "-c";
    const char *word = text_list_next(&program->list, NULL);
    int n = 0;
    if (word && !text_list_next(&program->list, word)) {
        argv[n++] = shell;
        argv[n++] = option;
    }
    for (; word; word = text_list_next(&program->list, word))
        argv[n++] = (char *)word;
    argv[n] = NULL;
}

// --- patterns for names of cameras

// Allows only characters of names, * and ?, so that no other character is special to fnmatch.
static const char *name_pattern_wrong(const char *pattern)
{
    pattern += *pattern == '!';
    const size_t length = strlen(pattern);
    if (!length)
        return "has an empty pattern";
    if (length > NAME_PATTERN_MAX)
        return "has a pattern that is too long";
    if (strspn(pattern, NAME_CHARACTERS "*?") != length)
        return "has a pattern with characters other than letters, digits, _ - * and ?";
    return NULL;
}

int name_patterns_parse(struct name_patterns *ret, const char *const text[], int n,
                        const char **wrong)
{
    for (int i = 0; i < n; i++)
        if ((*wrong = name_pattern_wrong(text[i])))
            return -EINVAL;
    // This list shares the texts, and the copy owns its own.
    return name_patterns_copy(ret, &(struct name_patterns){(char **)text, n});
}

int name_patterns_copy(struct name_patterns *ret, const struct name_patterns *from)
{
    *ret = (struct name_patterns){0};
    if (from->n == 0)
        return 0;
    ret->list = calloc((size_t)from->n, sizeof *ret->list);
    for (; ret->list && ret->n < from->n; ret->n++)
        if (!(ret->list[ret->n] = strdup(from->list[ret->n])))
            break;
    if (ret->n == from->n)
        return 0;
    name_patterns_free(ret);
    return -ENOMEM;
}

void name_patterns_free(struct name_patterns *patterns)
{
    for (int i = 0; i < patterns->n; i++)
        free(patterns->list[i]);
    free(patterns->list);
    *patterns = (struct name_patterns){0};
}

bool name_patterns_equal(const struct name_patterns *a, const struct name_patterns *b)
{
    bool equal = a->n == b->n;
    for (int i = 0; equal && i < a->n; i++)
        equal = !strcmp(a->list[i], b->list[i]);
    return equal;
}

// Returns true if one pattern matches the name, with or without a !.
static bool name_pattern_fits(const char *pattern, const char *name)
{
    return fnmatch(pattern + (*pattern == '!'), name, 0) == 0;
}

bool name_patterns_choose(const struct name_patterns *patterns, const char *name)
{
    int i = patterns->n - 1;
    while (i >= 0 && !name_pattern_fits(patterns->list[i], name))
        i--;
    return i >= 0 && *patterns->list[i] != '!';
}

// --- URLs of etcd

static const char http[] = "http://", https[] = "https://";

static bool is_https(const char *url)
{
    return strncasecmp(url, https, strlen(https)) == 0;
}

static bool is_port(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 5 && (!text[digits] || !strcmp(text + digits, "/")) &&
           atoi(text) >= 1 && atoi(text) <= 65535;
}

static const char *endpoint_wrong(const char *url)
{
    if (!is_https(url) && strncasecmp(url, http, strlen(http)) != 0)
        return "has an entry that is no address of etcd";
    const char *host = url + strlen(is_https(url) ? https : http);
    if (strchr(host, '@'))
        return "has a user or a password in it, which stand beside it";
    const bool brackets = *host == '[';
    const size_t length = strcspn(host, brackets ? "]" : ":/?#") + brackets;
    if (length <= 2u * brackets || (brackets && host[length - 1] != ']') ||
        strcspn(host, " \"<>\\") < length)
        return "has an entry without a host";
    if (host[length] != ':' || !is_port(host + length + 1))
        return "has an entry without a port, or with something behind it";
    return strlen(url) < ENDPOINT_SIZE ? NULL : "has an entry that is too long";
}

const char *endpoints_parse(struct endpoints *ret, const char *const text[], int n)
{
    struct endpoints endpoints = {0};
    for (int i = 0; i < n; i++) {
        const char *wrong = endpoint_wrong(text[i]);
        if (wrong)
            return wrong;
        for (int before = 0; before < i; before++)
            if (!strcasecmp(text[before], text[i]))
                return "has an entry twice";
        if (is_https(text[i]) != is_https(text[0]))
            return "has entries with TLS and without";
        strcpy(endpoints.url[endpoints.n++], text[i]);
    }
    *ret = endpoints;
    return NULL;
}

bool endpoints_have_tls(const struct endpoints *endpoints)
{
    return endpoints->n > 0 && is_https(endpoints->url[0]);
}

// --- labels of nodes

bool is_cluster_name(const char *text, size_t size)
{
    const size_t length = strspn(text, NAME_CHARACTERS ".");
    return length > 0 && length < size && !text[length];
}

int node_labels_add(struct node_labels *labels, const char *name, const char *value,
                    const char **wrong)
{
    for (int i = 0; i < labels->n; i++)
        if (!strcmp(labels->list[i].name, name))
            return -EEXIST;
    struct node_label label = {0};
    if (!is_cluster_name(name, sizeof label.name))
        *wrong = "has a name that cannot be";
    else if (!is_cluster_name(value, sizeof label.value))
        *wrong = "is no label";
    else if (labels->n == NODE_LABELS_MAX)
        *wrong = "is one label too many";
    else {
        strcpy(label.name, name);
        strcpy(label.value, value);
        labels->list[labels->n++] = label;
        return 0;
    }
    return -EINVAL;
}

// --- polygons

// Reads the whole number at *at, and moves *at behind it and its separator.
static const char *read_coordinate(const char **at, int *ret)
{
    const size_t n = strcspn(*at, ", ");
    if (!whole_read(*at, n, ret))
        return "has a coordinate that is not a whole number of pixels";
    if (*ret < 0 || *ret > IMAGE_SIDE_MAX)
        return "has a coordinate that is out of range";
    *at += n;
    *at += strspn(*at, " ");
    if (**at != ',')
        return NULL;
    ++*at;
    *at += strspn(*at, " ");
    return **at ? NULL : "has a comma behind its last point";
}

static const char *read_polygon(struct polygon *ret, const char *text)
{
    const char *wrong = NULL, *at = text + strspn(text, " ");
    while (*at && !wrong) {
        struct point point;
        if (ret->n == POLYGON_POINTS_MAX)
            return "has a polygon of too many points";
        wrong = read_coordinate(&at, &point.x);
        if (!wrong && !*at)
            return "has a point without a y";
        if (!wrong)
            wrong = read_coordinate(&at, &point.y);
        if (!wrong)
            ret->point[ret->n++] = point;
    }
    return wrong ? wrong : ret->n < 3 ? "has a polygon of fewer than three points" : NULL;
}

int polygons_parse(struct polygons *ret, const char *const text[], int n, const char **wrong)
{
    *ret = (struct polygons){.n = n};
    *wrong = NULL;
    ret->list = calloc((size_t)n, sizeof *ret->list);
    if (!ret->list)
        return -ENOMEM;
    for (int i = 0; !*wrong && i < n; i++)
        *wrong = read_polygon(&ret->list[i], text[i]);
    if (!*wrong)
        return 0;
    polygons_free(ret);
    return -EINVAL;
}

// Returns a copy of n items of `bytes` each, for free(); NULL for none, or without memory.
static void *copy_items(const void *items, int n, size_t bytes)
{
    void *ret = n > 0 ? calloc((size_t)n, bytes) : NULL;
    if (ret)
        memcpy(ret, items, (size_t)n * bytes);
    return ret;
}

int polygons_copy(struct polygons *ret, const struct polygons *from)
{
    *ret = (struct polygons){.list = copy_items(from->list, from->n, sizeof *from->list)};
    ret->n = ret->list ? from->n : 0;
    return ret->n == from->n ? 0 : -ENOMEM;
}

void polygons_free(struct polygons *polygons)
{
    free(polygons->list);
    *polygons = (struct polygons){0};
}

bool polygons_equal(const struct polygons *a, const struct polygons *b)
{
    return a->n == b->n && (a->n == 0 || !memcmp(a->list, b->list, (size_t)a->n * sizeof *a->list));
}

// --- regions

int rois_add(struct rois *rois, const char *name, struct rect rect, const char **wrong)
{
    const size_t length = strlen(name);
    if (!length || length >= sizeof rois->list->name || strspn(name, NAME_CHARACTERS) != length)
        *wrong = "has a name other than 1 to 23 of A-Z a-z 0-9 _ -";
    else if (!strcmp(name, ROI_ALL))
        *wrong = "has a name that stands for all regions";
    else
        *wrong = NULL;
    if (*wrong)
        return -EINVAL;
    if (rois_find(rois, name))
        return -EEXIST;
    struct roi *list = realloc(rois->list, (size_t)(rois->n + 1) * sizeof *list);
    if (!list)
        return -ENOMEM;
    rois->list = list;
    list[rois->n] = (struct roi){.rect = rect};
    memcpy(list[rois->n++].name, name, length);
    return 0;
}

int rois_copy(struct rois *ret, const struct rois *from)
{
    *ret = (struct rois){.list = copy_items(from->list, from->n, sizeof *from->list)};
    ret->n = ret->list ? from->n : 0;
    return ret->n == from->n ? 0 : -ENOMEM;
}

void rois_free(struct rois *rois)
{
    free(rois->list);
    *rois = (struct rois){0};
}

bool rois_equal(const struct rois *a, const struct rois *b)
{
    return a->n == b->n && (a->n == 0 || !memcmp(a->list, b->list, (size_t)a->n * sizeof *a->list));
}

const struct roi *rois_find(const struct rois *rois, const char *name)
{
    for (int i = 0; i < rois->n; i++)
        if (!strcmp(rois->list[i].name, name))
            return &rois->list[i];
    return NULL;
}
