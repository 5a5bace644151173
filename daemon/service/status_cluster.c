#include "daemon/service/status.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/cluster/documents.h"
#include "daemon/cluster/member.h"

// --- this box

static const char *state_name(enum member_state state)
{
    return state == MEMBER_IN ? "in" : state == MEMBER_JOINING ? "joining" : "out";
}

static json_t *member_json(const struct member *member, const struct member_health *health)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:o, s:o}", "node", member_node(member), "site",
                     member_site(member), "state", state_name(health->state), "plan",
                     (json_int_t)health->version, "alone_s",
                     health->alone_ns ? json_real((double)(boottime_ns() - health->alone_ns) / 1e9)
                                      : json_null(),
                     "error", *health->error ? status_string(health->error) : json_null());
}

json_t *status_cluster_json(const struct metrics *metrics)
{
    if (!metrics->member)
        return NULL;
    const struct member_health health = member_health(metrics->member);
    const struct site_counts counts = metrics_site_counts(metrics);
    json_t *json = member_json(metrics->member, &health);
    json_object_set_new(json, "nodes", json_integer(health.nodes));
    json_object_set_new(json, "cameras", json_integer(health.cameras));
    json_object_set_new(json, "elsewhere", json_integer(counts.elsewhere));
    json_object_set_new(json, "troubled", json_integer(counts.troubled));
    return json;
}

// --- all of it

static json_t *refused_json(const struct node_document *node)
{
    json_t *list = json_array();
    for (int64_t i = 0; list && i < node->n_refused; i++)
        json_array_append_new(list, status_string(node->refused[i]));
    return list;
}

static json_t *node_json(const struct site *site, int i)
{
    const struct plan_node *node = &site->nodes[i];
    const struct node_document *document = &site->node_keys[i]->node;
    return json_pack(
        "{s:s, s:b, s:s, s:s, s:f, s:f, s:f, s:b, s:I, s:b, s:i, s:i, s:I, s:o, s:o}", "name",
        node->name, "readable", site_node_readable(document), "http", document->http, "version",
        document->version, "room", node->room, "taken", node->taken, "used",
        site_node_used(document), "draining", node->draining, "obeys", (json_int_t)document->obeys,
        "behind", !site_node_obeys(site, document), "cameras", site_planned(site, node->name),
        "running", document->n_running, "since_ms", (json_int_t)document->since_ms, "labels",
        document_of_labels(&document->labels), "refused", refused_json(document));
}

static json_t *camera_json(const struct site *site, const struct plan_camera *camera)
{
    const struct site_camera_state state = site_camera_state(site, camera);
    return json_pack("{s:s, s:o, s:i, s:s, s:o, s:o, s:o}", "name", camera->name, "node",
                     status_string_or_null(state.node), "generation", (int)state.generation,
                     "state", state.word, "why", status_string_or_null(state.why), "wish",
                     status_string_or_null(camera->wish), "on", document_of_labels(camera->on));
}

struct lists {
    json_t *nodes, *cameras;
};

static void list_site(void *opaque, const struct site *site)
{
    const struct lists *lists = opaque;
    for (int i = 0; i < site->n_nodes; i++)
        json_array_append_new(lists->nodes, node_json(site, i));
    for (int i = 0; i < site->n_cameras; i++)
        json_array_append_new(lists->cameras, camera_json(site, &site->cameras[i]));
}

char *status_cluster_text(const struct metrics *metrics)
{
    if (!metrics->member)
        return strdup("{}");
    const struct member_health health = member_health(metrics->member);
    struct lists lists = {.nodes = json_array(), .cameras = json_array()};
    member_look(metrics->member, list_site, &lists);
    json_t *json = member_json(metrics->member, &health);
    json_object_set_new(json, "time_ms", json_integer(realtime_ns() / 1000000));
    json_object_set_new(json, "nodes", lists.nodes);
    json_object_set_new(json, "cameras", lists.cameras);
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(json);
    return text;
}

// --- one camera

static json_t *outputs_json(const struct camera *camera)
{
    json_t *list = json_array();
    for (int i = 0; list && i < camera->subscriptions->n; i++) {
        const struct output *output = camera->subscriptions->list[i].output;
        json_array_append_new(list, json_pack("{s:s, s:o}", "name", output->config->name, "sink",
                                              status_sink_json(output->outlet)));
    }
    return list;
}

static void answer_here(const struct metrics *metrics, const struct camera *camera,
                        struct http_exchange *exchange)
{
    const char *node = metrics->member ? member_node(metrics->member) : NULL;
    json_t *json =
        json_pack("{s:s, s:s?, s:i, s:o}", "camera", camera->config->name, "node", node,
                  "generation", (int)camera->config->generation, "outputs", outputs_json(camera));
    http_answer_json(exchange, 200, json);
}

static void answer_elsewhere(const struct member_where *where, const char *camera,
                             struct http_exchange *exchange)
{
    char url[DOCUMENT_URL_SIZE + sizeof "/api/v1/where/" + PLAN_NAME_SIZE];
    snprintf(url, sizeof url, "%s/api/v1/where/%.*s", where->http, PLAN_NAME_SIZE - 1, camera);
    json_t *json = json_pack("{s:s, s:s}", "camera", camera, "node", where->node);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    http_answer(exchange, &(struct http_page){.status = 307,
                                              .type = "application/json",
                                              .body = text,
                                              .size = text ? strlen(text) : 0,
                                              .location = url});
}

void status_cluster_where(const struct metrics *metrics, struct http_exchange *exchange)
{
    const char *name = http_part(exchange, 0);
    const struct camera *camera = metrics_camera(metrics, name);
    const struct member_where where =
        metrics->member ? member_where(metrics->member, name) : (struct member_where){0};
    if (camera)
        answer_here(metrics, camera, exchange);
    else if (!where.known && metrics->member && !where.reached)
        http_refuse(exchange, 503, "etcd has not been reached yet");
    else if (!where.known)
        http_refuse(exchange, 404, "there is no camera of that name");
    else if (!*where.node || where.here)
        http_refuse(exchange, 503, "no box shows the camera now");
    else if (!*where.http)
        http_refuse(exchange, 503, "the camera is at %s, which serves no HTTP", where.node);
    else
        answer_elsewhere(&where, name, exchange);
}
