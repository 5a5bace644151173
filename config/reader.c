#include "config/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/expand.h"
#include "config/url.h"
#include "config/value.h"

enum { SHOWN_MAX = 64, ALLOWED_MAX = 256 };

static const char tagged[] = "has a YAML tag, which is not supported";

size_t reader_enter(struct reader *r, const char *key)
{
    size_t n = strlen(r->path);
    char word[KEY_MAX];
    snprintf(r->path + n, sizeof r->path - n, "%s%s", n ? "." : "", shown(key, word, sizeof word));
    return n;
}

void reader_leave(struct reader *r, size_t n)
{
    r->path[n] = 0;
}

const yaml_node_t *reader_node(struct reader *r, int index)
{
    return yaml_document_get_node(&r->document, index);
}

struct place reader_place(struct reader *r, int index)
{
    struct place at = document_place(reader_node(r, index)->start_mark);
    at.file = r->mistakes.file;
    return at;
}

void reader_refuse(struct reader *r, int index, const struct config_row *row, const char *what)
{
    char allowed[ALLOWED_MAX];
    mistake(&r->mistakes, reader_place(r, index), r->path, "%s (%s)", what,
            row ? row_allowed(row, allowed, sizeof allowed) : "key: value");
}

static bool has_tag(const yaml_node_t *node)
{
    static const char *const known[] = {[YAML_SCALAR_NODE] = YAML_DEFAULT_SCALAR_TAG,
                                        [YAML_SEQUENCE_NODE] = YAML_DEFAULT_SEQUENCE_TAG,
                                        [YAML_MAPPING_NODE] = YAML_DEFAULT_MAPPING_TAG};
    return node->tag && strcmp((const char *)node->tag, known[node->type]) != 0;
}

static bool is_null(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*text || !strcmp(text, "~") || !strcmp(text, "null"));
}

const yaml_node_t *reader_mapping(struct reader *r, int index, const struct config_row *row)
{
    const yaml_node_t *node = reader_node(r, index);
    const char *wrong = has_tag(node)                     ? tagged
                        : is_null(node)                   ? "has no value"
                        : node->type != YAML_MAPPING_NODE ? "is not a mapping"
                                                          : NULL;
    if (!wrong)
        return node;
    reader_refuse(r, index, row, wrong);
    return NULL;
}

static const char *scalar_wrong(const yaml_node_t *node)
{
    if (has_tag(node))
        return tagged;
    if (node->type != YAML_SCALAR_NODE)
        return node->type == YAML_MAPPING_NODE ? "cannot be a mapping" : "cannot be a list";
    if (strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
        return "contains a zero byte";
    return is_null(node) ? "has no value" : NULL;
}

const char *reader_key(struct reader *r, int index)
{
    const yaml_node_t *node = reader_node(r, index);
    const char *wrong = scalar_wrong(node);
    if (!wrong)
        return (const char *)node->data.scalar.value;
    mistake(&r->mistakes, reader_place(r, index), r->path, "a key %s (key: value)", wrong);
    return NULL;
}

// Whether a URL contains a password ("user:password@"), or a parameter like "password=".
static bool has_secret_part(const char *url)
{
    size_t length;
    for (const char *part = url; (part = config_url_secret(url, part, &length)); part += length) {
        const char *colon = memchr(part, ':', length);
        if (part[length] != '@' || (colon && colon + 1 < part + length))
            return true;
    }
    return false;
}

// Notes a secret that everybody who can read the file sees.
static void note_secret(struct reader *r, int index, const struct config_row *row)
{
    const char *dot = strrchr(r->path, '.'), *name = dot ? dot + 1 : r->path;
    char *own = NULL;
    if (r->secret.line || (!value_is_text(row) && row->type != VALUE_SINK))
        return;
    if (expand_own(&own, (const char *)reader_node(r, index)->data.scalar.value) == 0 &&
        ((*own && config_name_is_secret(name, strlen(name))) || has_secret_part(own)))
        r->secret = reader_place(r, index);
    secret_free(own);
}

// The text of a scalar with its references expanded, for secret_free; *unknown is set if only the
// unit can read a part of it. NULL: a mistake was noted, or there is no memory.
static char *read_scalar(struct reader *r, int index, const struct config_row *row, bool *unknown)
{
    const yaml_node_t *node = reader_node(r, index);
    const char *wrong = scalar_wrong(node);
    char why[ALLOWED_MAX], *text = NULL;
    if (wrong) {
        reader_refuse(r, index, row, wrong);
        return NULL;
    }
    int status =
        expand_for(&text, (const char *)node->data.scalar.value, r->unit, unknown, why, sizeof why);
    if (status == -EINVAL)
        mistake(&r->mistakes, reader_place(r, index), r->path, "%s", why);
    r->no_memory |= status == -ENOMEM;
    note_secret(r, index, row);
    return text;
}

// A scalar is shown as it stands in the file, so that nothing that was looked up gets out. A text
// can be anything, so it is not shown.
static void refuse_value(struct reader *r, int index, const struct config_row *row,
                         const char *wrong)
{
    const yaml_node_t *node = reader_node(r, index);
    char raw[SHOWN_MAX], what[SHOWN_MAX + 128];
    if (node->type == YAML_SCALAR_NODE && !value_is_text(row)) {
        shown((const char *)node->data.scalar.value, raw, sizeof raw);
        snprintf(what, sizeof what, "'%s' %s", raw, wrong);
        wrong = what;
    }
    reader_refuse(r, index, row, wrong);
}

// The texts of a value: of a scalar, or of each entry of a list.
struct texts {
    char *text[VALUE_LIST_MAX];
    int n;
    bool unknown; // only the unit can read a part of them
};

static void free_texts(struct texts *texts)
{
    for (int i = 0; i < texts->n; i++)
        secret_free(texts->text[i]);
}

// For free_texts. False: a mistake was noted.
static bool read_texts(struct reader *r, int index, const struct config_row *row, bool list_allowed,
                       struct texts *ret)
{
    const yaml_node_t *node = reader_node(r, index);
    const bool list = node->type == YAML_SEQUENCE_NODE;
    const int *entry = list ? node->data.sequence.items.start : &index;
    const ptrdiff_t n = list ? node->data.sequence.items.top - entry : 1;
    const char *wrong = NULL;
    *ret = (struct texts){0};
    if (list && has_tag(node))
        wrong = tagged;
    else if (list && !list_allowed)
        wrong = "cannot be a list";
    else if (n < 1 || n > VALUE_LIST_MAX)
        wrong = "has the wrong number of entries";
    if (wrong) {
        reader_refuse(r, index, row, wrong);
        return false;
    }
    while (ret->n < n) {
        bool unknown = false;
        if (!(ret->text[ret->n] = read_scalar(r, entry[ret->n], row, &unknown)))
            return false;
        ret->n++;
        ret->unknown |= unknown;
    }
    return true;
}

// Returns whether the member holds the pair.
static bool read_pair(struct reader *r, const yaml_node_pair_t *pair, const char *name,
                      const struct config_row *row, void *object)
{
    struct texts texts;
    const char *wrong;
    int status = -EINVAL;
    if (read_texts(r, pair->value, row, !value_is_text(row), &texts) &&
        (!texts.unknown || value_is_text(row))) {
        status = value_add(row, object, name, (const char *const *)texts.text, texts.n,
                           reader_place(r, pair->key), &wrong);
        if (status == -EEXIST)
            mistake(&r->mistakes, reader_place(r, pair->key), r->path,
                    "is already given (each key once)");
        if (status == -EINVAL)
            refuse_value(r, pair->value, row, wrong);
        r->no_memory |= status == -ENOMEM;
    }
    free_texts(&texts);
    return status == 0;
}

// Reads "name: value" pairs in place of what the member holds.
static bool read_map(struct reader *r, int index, const struct config_row *row, void *object)
{
    bool good = true;
    const yaml_node_t *node = reader_mapping(r, index, row);
    if (!node)
        return false;
    value_free(row, object);
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    if (node->data.mapping.pairs.top - pair > value_pairs(row)) {
        reader_refuse(r, index, row, "has too many entries");
        return false;
    }
    for (; pair < node->data.mapping.pairs.top; pair++) {
        const char *name = reader_key(r, pair->key);
        if (name) {
            const size_t path = reader_enter(r, name);
            good &= read_pair(r, pair, name, row, object);
            reader_leave(r, path);
        }
        good &= name != NULL;
    }
    return good;
}

bool reader_value(struct reader *r, int index, const struct config_row *row, void *object)
{
    struct texts texts;
    const char *wrong;
    int status = -EINVAL;
    if (value_pairs(row))
        return read_map(r, index, row, object);
    const bool read = read_texts(r, index, row, value_is_list(row), &texts);
    if (read && (!texts.unknown || value_is_text(row))) {
        status = value_parse(row, object, (const char *const *)texts.text, texts.n, &wrong);
        if (status == -EINVAL)
            refuse_value(r, index, row, wrong);
        r->no_memory |= status == -ENOMEM;
    }
    const bool known = status == 0 && !texts.unknown;
    free_texts(&texts);
    return known;
}
