#include "config/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/allowed.h"
#include "config/expand.h"
#include "config/url.h"
#include "config/value.h"

enum { SHOWN_MAX = 64, ALLOWED_MAX = 256 };

static const char tagged[] = "has a YAML tag, which means nothing here";

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
    return document_place(reader_node(r, index)->start_mark);
}

void reader_refuse(struct reader *r, int index, const struct row *row, const char *what)
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

const yaml_node_t *reader_mapping(struct reader *r, int index, const struct row *row)
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
        return "has a zero byte in it";
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

// A password of "user:password@", or the value of a parameter like "password=".
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

// Notes a secret that whoever reads the file sees.
static void note_secret(struct reader *r, int index, const struct row *row)
{
    const char *dot = strrchr(r->path, '.'), *name = dot ? dot + 1 : r->path;
    char *own = NULL;
    if (r->secret.line || (row->type != VALUE_STRING && row->type != VALUE_OPTIONS))
        return;
    if (expand_own(&own, (const char *)reader_node(r, index)->data.scalar.value) == 0 &&
        ((*own && config_name_is_secret(name, strlen(name))) || has_secret_part(own)))
        r->secret = reader_place(r, index);
    reader_forget(own);
}

// *unknown: the value is not known here.
static char *read_scalar(struct reader *r, int index, const struct row *row, bool *unknown)
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

char *reader_scalar(struct reader *r, int index, const struct row *row)
{
    bool unknown;
    return read_scalar(r, index, row, &unknown);
}

void reader_forget(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

// A scalar is shown as it stands in the file, so that nothing that was looked up gets out; a text,
// which may be anything, is not.
static void refuse_value(struct reader *r, int index, const struct row *row, const char *wrong)
{
    const yaml_node_t *node = reader_node(r, index);
    char raw[SHOWN_MAX], what[SHOWN_MAX + 128];
    if (node->type == YAML_SCALAR_NODE && row->type != VALUE_STRING) {
        shown((const char *)node->data.scalar.value, raw, sizeof raw);
        snprintf(what, sizeof what, "'%s' %s", raw, wrong);
        wrong = what;
    }
    reader_refuse(r, index, row, wrong);
}

// The nodes of a list, or a scalar as a list of one. Returns their number.
static int entries(const yaml_node_t *node, int index, int ret[VALUE_ITEMS_MAX])
{
    const yaml_node_item_t *start = node->data.sequence.items.start;
    ret[0] = index;
    if (node->type != YAML_SEQUENCE_NODE)
        return 1;
    int n = (int)(node->data.sequence.items.top - start);
    for (int i = 0; i < n && i < VALUE_ITEMS_MAX; i++)
        ret[i] = start[i];
    return n;
}

static int parse_texts(struct reader *r, int index, const struct row *row, void *object,
                       char *const text[], int n)
{
    const char *wrong;
    int status = value_parse(row, object, (const char *const *)text, n, &wrong);
    if (status == -EINVAL)
        refuse_value(r, index, row, wrong);
    r->no_memory |= status == -ENOMEM;
    return status;
}

static const char *list_wrong(const yaml_node_t *node, const struct row *row, int n)
{
    if (node->type != YAML_SEQUENCE_NODE)
        return NULL;
    if (has_tag(node))
        return tagged;
    if (!value_is_list(row))
        return "cannot be a list";
    return n < 1 || n > VALUE_ITEMS_MAX ? "has the wrong number of entries" : NULL;
}

bool reader_value(struct reader *r, int index, const struct row *row, void *object)
{
    const yaml_node_t *node = reader_node(r, index);
    int entry[VALUE_ITEMS_MAX], n = entries(node, index, entry), status = -EINVAL;
    char *text[VALUE_ITEMS_MAX] = {0};
    bool any_unknown = false;
    const char *wrong = list_wrong(node, row, n);
    if (wrong) {
        reader_refuse(r, index, row, wrong);
        return false;
    }
    for (int i = 0; i < n; i++) {
        bool unknown = false;
        text[i] = read_scalar(r, entry[i], row, &unknown);
        if (!text[i])
            goto forget;
        any_unknown |= unknown;
    }
    if (!any_unknown || row->type == VALUE_STRING)
        status = parse_texts(r, index, row, object, text, n);
    if (any_unknown)
        status = -ENODATA;
forget:
    for (int i = 0; i < n; i++)
        reader_forget(text[i]);
    return status == 0;
}
