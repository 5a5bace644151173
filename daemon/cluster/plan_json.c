#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/document_fields.h"
#include "daemon/cluster/plan.h"

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
