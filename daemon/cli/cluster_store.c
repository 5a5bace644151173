#include "daemon/cli/cluster_store.h"

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "config/value.h"
#include "daemon/base/clock.h"
#include "daemon/base/exit_code.h"

#define TIMEOUT_NS (10 * INT64_C(1000000000))

static void forget(struct cluster_store *store)
{
    for (int i = 0; i < store->n_cameras; i++)
        camera_document_clear(&store->cameras[i].document);
    for (int i = 0; i < store->n_nodes; i++)
        node_document_clear(&store->nodes[i].document);
    free(store->cameras);
    free(store->nodes);
    free(store->troubles);
    free(store->drains);
    plan_free(store->plan);
    store->n_cameras = store->n_nodes = store->n_troubles = store->n_drains = 0;
    store->cameras = NULL;
    store->nodes = NULL;
    store->troubles = NULL;
    store->drains = NULL;
    store->plan = NULL;
    store->newer_plan = false;
}

// --- the connection

static int open_etcd(struct cluster_store *store, const struct cluster_config *cluster)
{
    const char *endpoints[ENDPOINTS_MAX];
    for (int i = 0; i < cluster->etcd.n; i++)
        endpoints[i] = cluster->etcd.url[i];
    const struct etcd_options options = {.endpoints = endpoints,
                                         .n_endpoints = cluster->etcd.n,
                                         .user = cluster->user,
                                         .password = cluster->password,
                                         .ca = cluster->ca,
                                         .cert = cluster->certificate,
                                         .key = cluster->keyfile};
    snprintf(store->site, sizeof store->site, "%s", cluster->site);
    if (etcd_open(&store->etcd, &options) < 0)
        err(EXIT_RUNTIME, NULL);
    return EXIT_OK;
}

int cluster_store_open(struct cluster_store *store, const char *path)
{
    static const struct config_load_options only = {.only = "cluster"};
    struct config *config = NULL;
    *store = (struct cluster_store){0};
    if (config_load_with(&config, path, &only, stderr) != 0)
        return EXIT_CONFIG;
    int code = EXIT_CONFIG;
    if (config->cluster.etcd.n == 0)
        fprintf(stderr,
                "framed cluster: %s: cluster.etcd is missing (cluster: {etcd: [http://HOST:2379], "
                "site: NAME})\n",
                path);
    else
        code = open_etcd(store, &config->cluster);
    config_free(config);
    return code;
}

void cluster_store_close(struct cluster_store *store)
{
    forget(store);
    etcd_close(store->etcd);
}

static int refuse(struct cluster_store *store, int rc)
{
    const char *why = etcd_error(store->etcd);
    fprintf(stderr, "framed cluster: %s\n",
            *why               ? why
            : rc == -ETIMEDOUT ? "etcd does not answer"
                               : strerror(-rc));
    return EXIT_RUNTIME;
}

// --- reading

static void *grow(void *list, int n, size_t size)
{
    list = reallocarray(list, (size_t)n + 1, size);
    if (!list)
        err(EXIT_RUNTIME, NULL);
    memset((char *)list + (size_t)n * size, 0, size);
    return list;
}

static void add_camera(struct cluster_store *store, const char *name,
                       const struct etcd_entry *entry)
{
    store->cameras = grow(store->cameras, store->n_cameras, sizeof *store->cameras);
    struct stored_camera *camera = &store->cameras[store->n_cameras++];
    strcpy(camera->name, name);
    camera->mod_revision = entry->mod_revision;
    camera->readable = camera_document_parse(&camera->document, entry->value, entry->length) == 0;
}

static void add_node(struct cluster_store *store, const char *name, const struct etcd_entry *entry)
{
    store->nodes = grow(store->nodes, store->n_nodes, sizeof *store->nodes);
    struct stored_node *node = &store->nodes[store->n_nodes++];
    strcpy(node->name, name);
    node->readable = node_document_parse(&node->document, entry->value, entry->length) == 0;
}

static void add_trouble(struct cluster_store *store, const char *name,
                        const struct etcd_entry *entry)
{
    store->troubles = grow(store->troubles, store->n_troubles, sizeof *store->troubles);
    struct stored_trouble *trouble = &store->troubles[store->n_troubles++];
    strcpy(trouble->camera, name);
    trouble_document_parse(&trouble->document, entry->value, entry->length);
}

static void add_drain(struct cluster_store *store, const char *name, const struct etcd_entry *entry)
{
    (void)entry;
    store->drains = grow(store->drains, store->n_drains, sizeof *store->drains);
    strcpy(store->drains[store->n_drains++], name);
}

static void add_entry(struct cluster_store *store, const char *key, const struct etcd_entry *entry)
{
    static const struct {
        const char *kind;
        void (*add)(struct cluster_store *, const char *, const struct etcd_entry *);
    } kinds[] = {{"camera/", add_camera},
                 {"node/", add_node},
                 {"trouble/", add_trouble},
                 {"drain/", add_drain}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t n = strlen(kinds[i].kind);
        if (strncmp(key, kinds[i].kind, n) == 0 && strlen(key + n) < PLAN_NAME_SIZE)
            kinds[i].add(store, key + n, entry);
    }
    if (strcmp(key, "plan") == 0)
        store->newer_plan =
            plan_parse(&store->plan, entry->value, entry->length) == -EPROTONOSUPPORT;
}

struct request {
    struct cluster_store *store;
    bool done, succeeded;
    int rc;
};

static void finish(struct request *request, int rc)
{
    request->done = true;
    request->rc = rc;
    etcd_wake(request->store->etcd);
}

static void take_entries(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct request *request = opaque;
    char prefix[STORE_KEY_SIZE];
    cluster_store_key(request->store, "", "", prefix);
    const size_t n = strlen(prefix) - 1; // without the slash behind the kind
    for (int i = 0; rc == 0 && i < answer->n; i++)
        if (strncmp(answer->entries[i].key, prefix, n) == 0)
            add_entry(request->store, answer->entries[i].key + n, &answer->entries[i]);
    finish(request, rc);
}

static int wait_for(struct request *request, int rc)
{
    if (rc < 0)
        err(EXIT_RUNTIME, NULL);
    while (!request->done)
        etcd_run(request->store->etcd, boottime_ns() + TIMEOUT_NS);
    return request->rc < 0 ? refuse(request->store, request->rc) : EXIT_OK;
}

int cluster_store_read(struct cluster_store *store)
{
    struct request request = {.store = store};
    char prefix[STORE_KEY_SIZE];
    forget(store);
    snprintf(prefix, sizeof prefix, "/framed/%s/", store->site);
    return wait_for(&request, etcd_get(store->etcd, prefix, TIMEOUT_NS, take_entries, &request));
}

// --- writing

static void take_commit(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct request *request = opaque;
    request->succeeded = rc == 0 && answer->succeeded;
    finish(request, rc);
}

int cluster_store_write(struct cluster_store *store, const struct etcd_compare compares[],
                        int n_compares, const struct etcd_write writes[], int n_writes,
                        bool *succeeded)
{
    struct request request = {.store = store};
    const int rc = etcd_commit(store->etcd, compares, n_compares, writes, n_writes, TIMEOUT_NS,
                               take_commit, &request);
    const int code = wait_for(&request, rc);
    *succeeded = request.succeeded;
    return code;
}

char *cluster_store_key(const struct cluster_store *store, const char *kind, const char *name,
                        char to[STORE_KEY_SIZE])
{
    snprintf(to, STORE_KEY_SIZE, "/framed/%s/%s/%s", store->site, kind, name);
    return to;
}

// --- what was read

const struct stored_camera *cluster_store_camera(const struct cluster_store *store,
                                                 const char *name)
{
    for (int i = 0; i < store->n_cameras; i++)
        if (strcmp(store->cameras[i].name, name) == 0)
            return &store->cameras[i];
    return NULL;
}

const struct stored_node *cluster_store_node(const struct cluster_store *store, const char *name)
{
    for (int i = 0; i < store->n_nodes; i++)
        if (strcmp(store->nodes[i].name, name) == 0)
            return &store->nodes[i];
    return NULL;
}

const struct stored_trouble *cluster_store_trouble(const struct cluster_store *store,
                                                   const char *camera)
{
    for (int i = 0; i < store->n_troubles; i++)
        if (strcmp(store->troubles[i].camera, camera) == 0)
            return &store->troubles[i];
    return NULL;
}

bool cluster_store_drains(const struct cluster_store *store, const char *node)
{
    for (int i = 0; i < store->n_drains; i++)
        if (strcmp(store->drains[i], node) == 0)
            return true;
    return false;
}
