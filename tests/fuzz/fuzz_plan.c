// Any value in etcd is refused, or is a document that stays the same when printed and read again; a
// plan leads to a next plan that is then final.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/documents.h"
#include "tests/fuzz/turns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_answer(int rc)
{
    return rc == 0 || rc == -EBADMSG || rc == -EPROTONOSUPPORT;
}

// Plans the cameras on two nodes of these names: some without a cost, some run since.
static void plan_on(const struct plan *plan)
{
    static const struct plan_node nodes[] = {{.name = "box1", .incarnation = 1, .room = 3},
                                             {.name = "box2", .incarnation = 2, .room = 2}};
    struct plan_camera *cameras = calloc((size_t)plan->n + 1, sizeof *cameras);
    struct plan *next = NULL, *none = NULL;
    MUST(cameras);
    for (int i = 0; i < plan->n; i++) {
        strcpy(cameras[i].name, plan->entries[i].camera);
        cameras[i].cost = i % 2;
        cameras[i].generation = i % 3 == 2 ? plan->entries[i].generation % 1000 * 60 : 0;
    }
    const int rc = plan_next(&next, plan, cameras, plan->n, nodes, 2, NULL);
    MUST(rc == 0 || rc == 1);
    MUST(plan_next(&none, next ? next : plan, cameras, plan->n, nodes, 2, NULL) == 1 && !none);
    plan_free(next);
    free(cameras);
}

static void try_plan(const char *text, size_t size)
{
    struct plan *plan = NULL, *again = NULL;
    const int rc = plan_parse(&plan, text, size);
    MUST(is_answer(rc) && (rc == 0) == (plan != NULL));
    if (!plan)
        return;
    char *one = plan_print(plan);
    MUST(one && plan_parse(&again, one, strlen(one)) == 0);
    char *two = plan_print(again);
    MUST(two && !strcmp(one, two));
    plan_on(plan);
    free(one);
    free(two);
    plan_free(plan);
    plan_free(again);
}

static void try_camera(const char *text, size_t size)
{
    struct camera_document camera, again;
    const int rc = camera_document_parse(&camera, text, size);
    MUST(is_answer(rc) && (rc == 0) == (camera.text != NULL));
    if (rc < 0)
        return;
    char *printed = camera_document_print(&camera);
    MUST(printed && camera_document_parse(&again, printed, strlen(printed)) == 0);
    MUST(!strcmp(camera.text, again.text) && camera.on.n == again.on.n);
    free(printed);
    camera_document_clear(&camera);
    camera_document_clear(&again);
}

static void try_node(const char *text, size_t size)
{
    struct node_document node, again;
    const int rc = node_document_parse(&node, text, size);
    MUST(is_answer(rc) && (rc == 0) == (node.incarnation != 0));
    if (rc < 0)
        return;
    char *printed = node_document_print(&node);
    MUST(printed && node_document_parse(&again, printed, strlen(printed)) == 0);
    MUST(node.n_running == again.n_running && node.n_refused == again.n_refused);
    free(printed);
    node_document_clear(&node);
    node_document_clear(&again);
}

static void try_trouble(const char *text, size_t size)
{
    struct trouble_document trouble, again;
    const int rc = trouble_document_parse(&trouble, text, size);
    MUST(is_answer(rc));
    if (rc < 0)
        return;
    char *printed = trouble_document_print(&trouble);
    MUST(printed && trouble_document_parse(&again, printed, strlen(printed)) == 0);
    free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    try_plan(text, size);
    try_camera(text, size);
    try_node(text, size);
    try_trouble(text, size);
    return 0;
}
