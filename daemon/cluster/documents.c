#include "daemon/cluster/documents.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/value.h"
#include "daemon/base/log.h"

// --- fields: a missing one is empty or 0; false: it is there and invalid

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

// One line of text for people, of at most `size` - 1 bytes.
static bool document_text(const json_t *document, const char *key, char *to, size_t size)
{
    const json_t *field = json_object_get(document, key);
    to[0] = 0;
    return !field || copy_text(field, to, size);
}

bool is_document_name(const char *name)
{
    return name[0] && strlen(name) < PLAN_NAME_SIZE && is_printable(name) && !strchr(name, '/');
}

// Name of a camera or a node; `required`: must not be missing.
static bool document_name(const json_t *document, const char *key, bool required,
                          char to[PLAN_NAME_SIZE])
{
    return document_text(document, key, to, PLAN_NAME_SIZE) &&
           (is_document_name(to) || (!to[0] && !required));
}

// 0 to `max`.
static bool document_integer(const json_t *document, const char *key, int64_t max, int64_t *to)
{
    const json_t *field = json_object_get(document, key);
    *to = json_integer_value(field);
    return !field || (json_is_integer(field) && *to >= 0 && *to <= max);
}

// 0 or more.
static bool document_number(const json_t *document, const char *key, double *to)
{
    const json_t *field = json_object_get(document, key);
    *to = json_number_value(field);
    return !field || (json_is_number(field) && isfinite(*to) && *to >= 0);
}

static bool document_bool(const json_t *document, const char *key, bool *to)
{
    const json_t *field = json_object_get(document, key);
    *to = json_is_true(field);
    return !field || json_is_boolean(field);
}

static bool document_labels(const json_t *document, const char *key, struct plan_labels *to)
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

// Opens a document, an object of this schema. Returns 0 with *ret for json_decref; -EBADMSG;
// -EPROTONOSUPPORT: a newer schema; or -ENOMEM.
static int document_open(json_t **ret, const char *json, size_t length)
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

// Returns the list of that name, empty if it is missing; NULL: it is not a list.
static const json_t *document_list(const json_t *document, const char *key, size_t *n)
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

// Prints and releases the document. Returns NULL for NULL, or without memory.
static char *document_print(json_t *document)
{
    char *text = document ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(document);
    return text;
}

// --- cameras, nodes and troubles

void camera_document_clear(struct camera_document *document)
{
    secret_free(document->text);
    *document = (struct camera_document){0};
}

static int parse_camera(struct camera_document *camera, const json_t *json)
{
    const char *text = json_string_value(json_object_get(json, "text"));
    if (!text || !document_labels(json, "on", &camera->on) ||
        !document_name(json, "wish", false, camera->wish) ||
        !document_number(json, "cost", &camera->cost))
        return -EBADMSG;
    camera->text = strdup(text);
    return camera->text ? 0 : -ENOMEM;
}

int camera_document_parse(struct camera_document *ret, const char *text, size_t length)
{
    json_t *json;
    *ret = (struct camera_document){0};
    int rc = document_open(&json, text, length);
    if (rc < 0)
        return rc;
    rc = parse_camera(ret, json);
    json_decref(json);
    if (rc < 0)
        camera_document_clear(ret);
    return rc;
}

char *camera_document_print(const struct camera_document *camera)
{
    return document_print(json_pack("{s:i, s:s, s:o, s:s, s:f}", "schema", PLAN_SCHEMA, "text",
                                    camera->text, "on", document_of_labels(&camera->on), "wish",
                                    camera->wish, "cost", camera->cost));
}

void node_document_clear(struct node_document *document)
{
    free(document->running);
    free(document->refused);
    *document = (struct node_document){0};
}

static bool parse_running_camera(struct running_camera *running, const json_t *json)
{
    int64_t generation;
    if (!json_is_object(json) || !document_name(json, "camera", true, running->camera) ||
        !document_integer(json, "generation", PLAN_GENERATION_MAX, &generation) ||
        generation == 0 || !document_number(json, "cost", &running->cost))
        return false;
    running->generation = (uint32_t)generation;
    return true;
}

static int parse_running(struct node_document *node, const json_t *json)
{
    size_t n;
    const json_t *list = document_list(json, "running", &n);
    if (!list)
        return -EBADMSG;
    node->running = calloc(n + 1, sizeof *node->running);
    if (!node->running)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (!parse_running_camera(&node->running[node->n_running++], json_array_get(list, i)))
            return -EBADMSG;
    return 0;
}

static int parse_refused(struct node_document *node, const json_t *json)
{
    size_t n;
    const json_t *list = document_list(json, "refused", &n);
    if (!list)
        return -EBADMSG;
    node->refused = calloc(n + 1, sizeof *node->refused);
    if (!node->refused)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name || !is_document_name(name))
            return -EBADMSG;
        strcpy(node->refused[node->n_refused++], name);
    }
    return 0;
}

static int parse_node(struct node_document *node, const json_t *json)
{
    if (!document_integer(json, "incarnation", INT64_MAX, &node->incarnation) ||
        node->incarnation == 0 ||
        !document_integer(json, "obeys", PLAN_VERSION_MAX, &node->obeys) ||
        !document_number(json, "room", &node->room) ||
        !document_number(json, "taken", &node->taken) ||
        !document_bool(json, "counts", &node->counts) ||
        !document_integer(json, "since", DOCUMENT_MS_MAX, &node->since_ms) ||
        !document_text(json, "http", node->http, sizeof node->http) ||
        !document_text(json, "version", node->version, sizeof node->version) ||
        !document_labels(json, "labels", &node->labels) ||
        !document_bool(json, "draining", &node->draining))
        return -EBADMSG;
    const int rc = parse_running(node, json);
    return rc < 0 ? rc : parse_refused(node, json);
}

int node_document_parse(struct node_document *ret, const char *text, size_t length)
{
    json_t *json;
    *ret = (struct node_document){0};
    int rc = document_open(&json, text, length);
    if (rc < 0)
        return rc;
    rc = parse_node(ret, json);
    json_decref(json);
    if (rc < 0)
        node_document_clear(ret);
    return rc;
}

static json_t *print_running(const struct node_document *node)
{
    json_t *list = json_array();
    for (int i = 0; list && i < node->n_running; i++) {
        const struct running_camera *running = &node->running[i];
        if (json_array_append_new(list, json_pack("{s:s, s:I, s:f}", "camera", running->camera,
                                                  "generation", (json_int_t)running->generation,
                                                  "cost", running->cost))) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *print_refused(const struct node_document *node)
{
    json_t *list = json_array();
    for (int64_t i = 0; list && i < node->n_refused; i++) {
        if (json_array_append_new(list, json_string(node->refused[i]))) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

char *node_document_print(const struct node_document *node)
{
    return document_print(json_pack(
        "{s:i, s:I, s:I, s:f, s:f, s:b, s:s, s:o, s:s, s:b, s:I, s:o, s:o}", "schema", PLAN_SCHEMA,
        "incarnation", (json_int_t)node->incarnation, "obeys", (json_int_t)node->obeys, "room",
        node->room, "taken", node->taken, "counts", node->counts, "http", node->http, "labels",
        document_of_labels(&node->labels), "version", node->version, "draining", node->draining,
        "since", (json_int_t)node->since_ms, "running", print_running(node), "refused",
        print_refused(node)));
}

int trouble_document_parse(struct trouble_document *ret, const char *text, size_t length)
{
    json_t *json;
    *ret = (struct trouble_document){0};
    int rc = document_open(&json, text, length);
    if (rc < 0)
        return rc;
    if (!document_name(json, "node", false, ret->node) ||
        !document_text(json, "why", ret->why, sizeof ret->why)) {
        *ret = (struct trouble_document){0};
        rc = -EBADMSG;
    }
    json_decref(json);
    return rc;
}

// JSON requires UTF-8, and a message may quote anything.
static void make_ascii(char *text)
{
    for (; *text; text++)
        *text = *text & 0x80 ? '?' : *text;
}

char *trouble_document_print(const struct trouble_document *trouble)
{
    char why[DOCUMENT_WHY_SIZE];
    log_scrub(why, sizeof why, trouble->why);
    make_ascii(why);
    return document_print(
        json_pack("{s:i, s:s, s:s}", "schema", PLAN_SCHEMA, "node", trouble->node, "why", why));
}

// --- the plan

static json_t *print_entry(const struct plan_entry *entry)
{
    json_t *json = json_pack("{s:s, s:I, s:I}", "node", entry->node, "bound",
                             (json_int_t)entry->bound, "generation", (json_int_t)entry->generation);
    if (json && entry->cost > 0 && json_object_set_new(json, "cost", json_real(entry->cost)) < 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

char *plan_print(const struct plan *plan)
{
    json_t *cameras = json_object();
    int rc = cameras ? 0 : -1;
    for (int i = 0; rc == 0 && i < plan->n; i++) {
        const struct plan_entry *entry = &plan->entries[i];
        if (is_document_name(entry->camera) && (!*entry->node || is_document_name(entry->node)))
            rc = json_object_set_new(cameras, entry->camera, print_entry(entry));
    }
    if (rc < 0) {
        json_decref(cameras);
        return NULL;
    }
    return document_print(json_pack("{s:i, s:I, s:I, s:o}", "schema", plan->schema, "version",
                                    (json_int_t)plan->version, "removed", (json_int_t)plan->removed,
                                    "cameras", cameras));
}

static bool parse_entry(struct plan_entry *entry, const char *camera, const json_t *json)
{
    int64_t generation;
    if (!json_is_object(json) || !is_document_name(camera) ||
        !document_name(json, "node", false, entry->node) ||
        !document_integer(json, "bound", INT64_MAX, &entry->bound) ||
        !document_integer(json, "generation", PLAN_GENERATION_MAX, &generation) ||
        !document_number(json, "cost", &entry->cost) || (entry->node[0] && generation == 0))
        return false;
    strcpy(entry->camera, camera);
    entry->generation = (uint32_t)generation;
    return true;
}

static int order_of_entries(const void *a, const void *b)
{
    return strcmp(((const struct plan_entry *)a)->camera, ((const struct plan_entry *)b)->camera);
}

static int parse_entries(struct plan *plan, json_t *cameras)
{
    const char *name;
    json_t *camera;
    if (cameras && !json_is_object(cameras))
        return -EBADMSG;
    plan->entries = calloc(json_object_size(cameras) + 1, sizeof *plan->entries);
    if (!plan->entries)
        return -ENOMEM;
    json_object_foreach(cameras, name, camera)
    {
        if (!parse_entry(&plan->entries[plan->n++], name, camera))
            return -EBADMSG;
    }
    qsort(plan->entries, (size_t)plan->n, sizeof *plan->entries, order_of_entries);
    return 0;
}

static int parse_plan(struct plan *plan, const json_t *json)
{
    int64_t removed;
    plan->schema = PLAN_SCHEMA;
    if (!document_integer(json, "version", PLAN_VERSION_MAX, &plan->version) ||
        !document_integer(json, "removed", PLAN_GENERATION_MAX, &removed))
        return -EBADMSG;
    plan->removed = (uint32_t)removed;
    return parse_entries(plan, json_object_get(json, "cameras"));
}

int plan_parse(struct plan **ret, const char *text, size_t length)
{
    json_t *json;
    int rc = document_open(&json, text, length);
    if (rc < 0)
        return rc;
    struct plan *plan = calloc(1, sizeof *plan);
    rc = plan ? parse_plan(plan, json) : -ENOMEM;
    json_decref(json);
    if (rc == 0)
        *ret = plan;
    else
        plan_free(plan);
    return rc;
}
