#include "daemon/cluster/document_fields.h"

#include <errno.h>
#include <math.h>
#include <string.h>

int document_open(json_t **ret, const char *json, size_t length)
{
    json_error_t error;
    int64_t schema = 0;
    json_t *document = json_loadb(json, length, JSON_REJECT_DUPLICATES, &error);
    if (!document)
        return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EBADMSG;
    int rc = -EBADMSG;
    if (json_is_object(document) && document_integer(document, "schema", INT64_MAX, &schema) &&
        schema > 0)
        rc = schema > PLAN_SCHEMA ? -EPROTONOSUPPORT : 0;
    if (rc < 0)
        json_decref(document);
    else
        *ret = document;
    return rc;
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

static bool copy_text(const json_t *from, char *to, size_t size)
{
    const char *text = json_string_value(from);
    if (!text || strlen(text) >= size || !is_printable(text))
        return false;
    strcpy(to, text);
    return true;
}

bool document_text(const json_t *document, const char *key, char *to, size_t size)
{
    const json_t *field = json_object_get(document, key);
    to[0] = 0;
    return !field || copy_text(field, to, size);
}

bool is_document_name(const char *name)
{
    return name[0] && strlen(name) < PLAN_NAME_SIZE && is_printable(name) && !strchr(name, '/');
}

bool document_name(const json_t *document, const char *key, bool required, char to[PLAN_NAME_SIZE])
{
    return document_text(document, key, to, PLAN_NAME_SIZE) &&
           (is_document_name(to) || (!to[0] && !required));
}

bool document_integer(const json_t *document, const char *key, int64_t max, int64_t *to)
{
    const json_t *field = json_object_get(document, key);
    *to = json_integer_value(field);
    return !field || (json_is_integer(field) && *to >= 0 && *to <= max);
}

bool document_number(const json_t *document, const char *key, double *to)
{
    const json_t *field = json_object_get(document, key);
    *to = json_number_value(field);
    return !field || (json_is_number(field) && isfinite(*to) && *to >= 0);
}

bool document_bool(const json_t *document, const char *key, bool *to)
{
    const json_t *field = json_object_get(document, key);
    *to = json_is_true(field);
    return !field || json_is_boolean(field);
}

bool document_labels(const json_t *document, const char *key, struct plan_labels *to)
{
    json_t *field = json_object_get(document, key), *value;
    const char *name;
    to->n = 0;
    if (field && (!json_is_object(field) || json_object_size(field) > PLAN_LABELS_MAX))
        return false;
    json_object_foreach(field, name, value)
    {
        struct plan_label *label = &to->list[to->n++];
        if (strlen(name) >= sizeof label->key || !is_printable(name) ||
            !copy_text(value, label->value, sizeof label->value))
            return false;
        strcpy(label->key, name);
    }
    return true;
}

const json_t *document_list(const json_t *document, const char *key, size_t *n)
{
    const json_t *field = json_object_get(document, key);
    *n = json_array_size(field);
    return !field ? document : json_is_array(field) ? field : NULL;
}

json_t *document_of_labels(const struct plan_labels *labels)
{
    json_t *object = json_object();
    for (int i = 0; object && labels && i < labels->n; i++) {
        if (json_object_set_new(object, labels->list[i].key, json_string(labels->list[i].value))) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

char *document_print(json_t *document)
{
    char *text = document ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(document);
    return text;
}
