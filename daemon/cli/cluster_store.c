#include "daemon/cli/cluster_store.h"

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "config/print.h"
#include "config/value.h"
#include "daemon/base/clock.h"
#include "daemon/base/process.h"
#include "daemon/cluster/site.h"

#define TIMEOUT_NS (10 * INT64_C(1000000000))

enum { STORE_KEY_SIZE = 192 };

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

// Writes all, or nothing if a comparison fails: *succeeded. Returns EXIT_OK or EXIT_RUNTIME.
static int cluster_store_write(struct cluster_store *store, const struct etcd_compare compares[],
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

// Writes "/framed/SITE/KIND/NAME" to `to` and returns it.
static char *cluster_store_key(const struct cluster_store *store, const char *kind,
                               const char *name, char to[STORE_KEY_SIZE])
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

// --- changes of cameras, written in batches

// etcd accepts 128 writes and 1.5 MiB in a transaction.
enum { BATCH_WRITES = 100, BATCH_BYTES = 512 << 10 };

struct change {
    const char *what, *name; // "added"
    char key[STORE_KEY_SIZE], trouble[STORE_KEY_SIZE];
    char *value; // NULL: the camera is removed
    int64_t seen;
};

struct changes {
    struct change *list;
    int n;
};

static void note_change(struct changes *changes, const struct cluster_store *store,
                        const char *what, const char *name, const struct camera_document *document)
{
    const struct site_key *before = site_camera_key(&store->site, name);
    changes->list = reallocarray(changes->list, (size_t)changes->n + 1, sizeof *changes->list);
    if (!changes->list)
        err(EXIT_RUNTIME, NULL);
    struct change *change = &changes->list[changes->n++];
    *change = (struct change){.what = what, .name = name, .seen = before ? before->revision : 0};
    cluster_store_key(store, "camera", name, change->key);
    cluster_store_key(store, "trouble", name, change->trouble);
    if (document && !(change->value = camera_document_print(document)))
        err(EXIT_RUNTIME, NULL);
}

static void free_changes(struct changes *changes)
{
    for (int i = 0; i < changes->n; i++)
        secret_free(changes->list[i].value);
    free(changes->list);
}

// Returns how many changes from here on fit into a transaction. A removal is two writes.
static int count_batch(const struct change *change, int left)
{
    size_t bytes = 0;
    int n = 0;
    for (; n < left && n < BATCH_WRITES / 2; n++) {
        bytes += change[n].value ? strlen(change[n].value) : 0;
        if (n > 0 && bytes > BATCH_BYTES)
            break;
    }
    return n;
}

static int write_batch(struct cluster_store *store, const struct change changes[], int n)
{
    struct etcd_compare compares[BATCH_WRITES];
    struct etcd_write writes[BATCH_WRITES];
    bool succeeded;
    int n_writes = 0;
    for (int i = 0; i < n; i++) {
        compares[i] = (struct etcd_compare){ETCD_MOD_REVISION, changes[i].key, changes[i].seen};
        writes[n_writes++] = (struct etcd_write){.key = changes[i].key, .value = changes[i].value};
        if (!changes[i].value)
            writes[n_writes++] = (struct etcd_write){.key = changes[i].trouble};
    }
    int code = cluster_store_write(store, compares, n, writes, n_writes, &succeeded);
    if (code == EXIT_OK && !succeeded) {
        fprintf(stderr, "framed cluster: somebody else has changed cameras meanwhile; try again\n");
        code = EXIT_RUNTIME;
    }
    for (int i = 0; code == EXIT_OK && i < n; i++)
        printf("%s %s\n", changes[i].what, changes[i].name);
    return code;
}

static int write_changes(struct cluster_store *store, const struct changes *changes)
{
    int code = EXIT_OK;
    for (int at = 0, n; code == EXIT_OK && at < changes->n; at += n) {
        n = count_batch(&changes->list[at], changes->n - at);
        code = write_batch(store, &changes->list[at], n);
    }
    return code;
}

// --- cameras of files

static void refuse_key(const struct config *config, struct place at, const char *key,
                       const char *name)
{
    fprintf(stderr, "%s:%d:%d: %s%s: cannot be given to a cluster (cameras alone)\n",
            config->files.path[at.file], at.line, at.column, key, name);
}

// Loads cameras for a cluster. Ignores a daemon's keys; refuses others, which would be lost.
static int load_cameras(struct config **ret, const char *file)
{
    if (config_load(ret, file, stderr) != 0)
        return EXIT_CONFIG;
    const struct config *config = *ret;
    int wrong = 0;
    for (int i = 0; i < config->n_batches; i++, wrong++)
        refuse_key(config, config->batches[i].place, "batches.", config->batches[i].name);
    for (int i = 0; i < config->n_cameras; i++)
        if (config->cameras[i].paused.line && ++wrong)
            refuse_key(config, config->cameras[i].paused, "paused", "");
    if (wrong == 0)
        return EXIT_OK;
    config_free(*ret);
    *ret = NULL;
    return EXIT_CONFIG;
}

static void copy_labels(struct plan_labels *to, const struct node_labels *from)
{
    _Static_assert((int)PLAN_LABELS_MAX == (int)NODE_LABELS_MAX, "as many labels");
    for (to->n = 0; to->n < from->n; to->n++) {
        strcpy(to->list[to->n].key, from->list[to->n].name);
        strcpy(to->list[to->n].value, from->list[to->n].value);
    }
}

static struct camera_document make_document(const struct camera_config *camera)
{
    struct camera_document document = {0};
    size_t size;
    FILE *to = open_memstream(&document.text, &size);
    if (to)
        config_print_camera(to, camera);
    if (!to || fclose(to) != 0)
        err(EXIT_RUNTIME, NULL);
    copy_labels(&document.on, &camera->on);
    document.cost = (double)camera->picture.width * camera->picture.height / (1920.0 * 1080);
    return document;
}

static bool same_labels(const struct plan_labels *a, const struct plan_labels *b)
{
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++) {
        bool found = false;
        for (int j = 0; j < b->n; j++)
            found |= !strcmp(a->list[i].key, b->list[j].key) &&
                     !strcmp(a->list[i].value, b->list[j].value);
        same = found;
    }
    return same;
}

static bool same_camera(const struct site_key *before, const struct camera_document *now)
{
    return before->rc == 0 && strcmp(before->camera.text, now->text) == 0 &&
           same_labels(&before->camera.on, &now->on);
}

// Returns true if the camera is unchanged.
static bool put(struct changes *changes, const struct cluster_store *store,
                const struct camera_config *camera)
{
    const struct site_key *before = site_camera_key(&store->site, camera->name);
    struct camera_document document = make_document(camera);
    const bool same = before && same_camera(before, &document);
    if (before)
        strcpy(document.wish, before->camera.wish);
    if (!same)
        note_change(changes, store, before ? "changed" : "added", camera->name, &document);
    camera_document_clear(&document);
    return same;
}

static bool is_in(const struct config *config, const char *name)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (strcmp(config->cameras[i].name, name) == 0)
            return true;
    return false;
}

static int apply(struct cluster_store *store, const struct config *config, bool prune)
{
    struct changes changes = {0};
    int same = 0, code = cluster_store_read(store);
    for (int i = 0; code == EXIT_OK && i < config->n_cameras; i++)
        same += put(&changes, store, &config->cameras[i]);
    for (int i = 0; code == EXIT_OK && prune && i < store->site.n_cameras; i++)
        if (!is_in(config, store->site.cameras[i].name))
            note_change(&changes, store, "removed", store->site.cameras[i].name, NULL);
    if (code == EXIT_OK)
        code = write_changes(store, &changes);
    if (code == EXIT_OK)
        printf("%d camera%s changed, %d the same\n", changes.n, changes.n == 1 ? "" : "s", same);
    for (int i = 0; code == EXIT_OK && !prune && i < store->site.n_cameras; i++)
        if (!is_in(config, store->site.cameras[i].name))
            printf("%s is in the cluster and not in the file (--prune removes it)\n",
                   store->site.cameras[i].name);
    free_changes(&changes);
    return code;
}

int cluster_apply(struct cluster_store *store, const char *file, bool prune)
{
    struct config *config = NULL;
    int code = load_cameras(&config, file);
    if (code == EXIT_OK)
        code = apply(store, config, prune);
    config_free(config);
    return code;
}

static int add_all(struct cluster_store *store, struct config *const configs[], int n)
{
    struct changes changes = {0};
    int code = cluster_store_read(store);
    for (int i = 0; code == EXIT_OK && i < n; i++) {
        for (int c = 0; c < configs[i]->n_cameras; c++) {
            const char *name = configs[i]->cameras[c].name;
            bool twice = site_camera(&store->site, name);
            for (int j = 0; j < i; j++)
                twice |= is_in(configs[j], name);
            if (!twice) {
                put(&changes, store, &configs[i]->cameras[c]);
                continue;
            }
            fprintf(stderr,
                    "framed cluster: %s is there already (framed cluster apply changes it)\n",
                    name);
            code = EXIT_RUNTIME;
        }
    }
    if (code == EXIT_OK)
        code = write_changes(store, &changes);
    free_changes(&changes);
    return code;
}

int cluster_add(struct cluster_store *store, const char *const files[], int n)
{
    struct config **configs = calloc((size_t)n, sizeof(struct config *));
    int code = configs ? EXIT_OK : EXIT_RUNTIME;
    for (int i = 0; configs && i < n; i++) {
        const int own = load_cameras(&configs[i], files[i]);
        code = own == EXIT_OK ? code : own;
    }
    if (code == EXIT_OK)
        code = add_all(store, configs, n);
    for (int i = 0; configs && i < n; i++)
        config_free(configs[i]);
    free(configs);
    return code;
}

// --- cameras and nodes by name

static bool is_known_camera(const struct cluster_store *store, const char *name)
{
    const bool known = site_camera(&store->site, name);
    if (!known)
        fprintf(stderr, "framed cluster: %s is no camera of the cluster\n", name);
    return known;
}

int cluster_remove(struct cluster_store *store, const char *const names[], int n)
{
    struct changes changes = {0};
    int code = cluster_store_read(store);
    for (int i = 0; code == EXIT_OK && i < n; i++)
        if (!is_known_camera(store, names[i]))
            code = EXIT_RUNTIME;
    for (int i = 0; code == EXIT_OK && i < n; i++)
        note_change(&changes, store, "removed", names[i], NULL);
    if (code == EXIT_OK)
        code = write_changes(store, &changes);
    free_changes(&changes);
    return code;
}

static bool is_known_node(const struct cluster_store *store, const char *node)
{
    const bool known = site_node(&store->site, node) || cluster_store_drains(store, node) ||
                       site_planned(&store->site, node) > 0;
    if (!known)
        fprintf(stderr, "framed cluster: %s is no node of the cluster (framed cluster status)\n",
                node);
    return known;
}

int cluster_move(struct cluster_store *store, const char *name, const char *node)
{
    struct changes changes = {0};
    const bool anywhere = strcmp(node, "-") == 0;
    int code = cluster_store_read(store);
    if (code != EXIT_OK)
        return code;
    if (!is_known_camera(store, name) || (!anywhere && !is_known_node(store, node)))
        return EXIT_RUNTIME;
    const struct site_key *key = site_camera_key(&store->site, name);
    if (key->rc < 0) {
        fprintf(stderr, "framed cluster: %s is of a newer framed\n", name);
        return EXIT_RUNTIME;
    }
    struct camera_document document = key->camera; // its text still belongs to the site
    snprintf(document.wish, sizeof document.wish, "%s", anywhere ? "" : node);
    note_change(&changes, store, anywhere ? "freed" : "moved", name, &document);
    code = write_changes(store, &changes);
    free_changes(&changes);
    return code;
}

int cluster_drain(struct cluster_store *store, const char *node, bool drain)
{
    char key[STORE_KEY_SIZE];
    bool succeeded;
    int code = cluster_store_read(store);
    if (code == EXIT_OK && !is_known_node(store, node))
        code = EXIT_RUNTIME;
    const struct etcd_write write = {.key = cluster_store_key(store, "drain", node, key),
                                     .value = drain ? "" : NULL};
    if (code == EXIT_OK)
        code = cluster_store_write(store, NULL, 0, &write, 1, &succeeded);
    if (code == EXIT_OK)
        printf(drain ? "%s gives its cameras away\n" : "%s takes cameras\n", node);
    return code;
}
