#include "daemon/cluster/documents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/value.h"
#include "daemon/base/log.h"
#include "daemon/cluster/document_fields.h"

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
