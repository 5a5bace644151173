#include "daemon/cli/cluster_store.h"

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "config/value.h"
#include "daemon/base/clock.h"
#include "daemon/base/process.h"

#define TIMEOUT_NS (10 * INT64_C(1000000000))

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
    char prefix[STORE_KEY_SIZE];
    snprintf(store->name, sizeof store->name, "%s", cluster->site);
    snprintf(prefix, sizeof prefix, "/framed/%s/", store->name);
    if (mirror_open(&store->mirror, prefix) < 0 || etcd_open(&store->etcd, &options) < 0)
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
    site_clear(&store->site);
    mirror_close(&store->mirror);
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
    struct cluster_store *store = request->store;
    if (rc == 0)
        rc = mirror_set(&store->mirror, answer);
    if (rc == 0)
        rc = site_read(&store->site, &store->mirror, &(struct site){0});
    if (rc == -ENOMEM)
        err(EXIT_RUNTIME, NULL);
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
    site_clear(&store->site);
    return wait_for(
        &request, etcd_get(store->etcd, store->mirror.prefix, TIMEOUT_NS, take_entries, &request));
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
    snprintf(to, STORE_KEY_SIZE, "%s%s/%s", store->mirror.prefix, kind, name);
    return to;
}

bool cluster_store_drains(const struct cluster_store *store, const char *node)
{
    char key[STORE_KEY_SIZE];
    snprintf(key, sizeof key, "drain/%s", node);
    return mirror_find(&store->mirror, key);
}
