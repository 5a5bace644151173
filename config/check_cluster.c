#include "config/check_cluster.h"

#include <string.h>

#include "config/object.h"

enum { NAME_SIZE = 64 }; // of a site's or node's name, with the final zero

static const struct given *find(const struct given given[], const char *key)
{
    return &given[table_find(&root_table, key) - root_table.rows];
}

static bool is_set(const struct given given[], const char *key)
{
    const struct given *of = find(given, key);
    return of->key.line && !of->wrong;
}

static void check_name(struct mistakes *mistakes, const struct given given[], const char *key,
                       const char *name)
{
    if (is_set(given, key) && name && !is_cluster_name(name, NAME_SIZE))
        mistake(mistakes, find(given, key)->value, key,
                "cannot be a name (1 to %d of A-Z a-z 0-9 . _ -)", NAME_SIZE - 1);
}

static void check_together(struct mistakes *mistakes, const struct given given[], const char *key,
                           const char *other, const char *what)
{
    if (is_set(given, key) && !find(given, other)->key.line)
        mistake(mistakes, find(given, key)->key, key, "%s", what);
}

static void check_tls(struct mistakes *mistakes, const struct config *config,
                      const struct given given[])
{
    static const char *const keys[] = {"cluster.ca", "cluster.certificate", "cluster.keyfile"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (is_set(given, keys[i]) && !endpoints_have_tls(&config->cluster.etcd))
            mistake(mistakes, find(given, keys[i])->key, keys[i],
                    "is only for an etcd with TLS (etcd: [https://HOST:PORT])");
    check_together(mistakes, given, "cluster.certificate", "cluster.keyfile",
                   "has no key beside it (keyfile: FILE)");
    check_together(mistakes, given, "cluster.keyfile", "cluster.certificate",
                   "has no certificate beside it (certificate: FILE)");
}

// Only the cluster's cameras are placed by labels, so `on` has no effect on the daemon's own.
static void check_cameras(struct mistakes *mistakes, const struct config *config)
{
    const struct config_row *on = table_find(&camera_table, "on");
    char dotted[KEY_MAX];
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        const struct place at = camera->places.value[on - camera_table.rows];
        snprintf(dotted, sizeof dotted, "cameras.%s.on", camera->name);
        if (at.line > 0)
            mistake(mistakes, at, dotted,
                    "has no effect on a camera of this daemon's own (framed cluster apply -f FILE "
                    "gives cameras to the cluster)");
    }
}

void check_cluster(struct mistakes *mistakes, const struct config *config,
                   const struct given given[])
{
    const char *const prefix = "cluster.";
    for (int i = 0; i < root_table.n && !find(given, "cluster.etcd")->key.line; i++) {
        const struct config_row *row = &root_table.rows[i];
        if (strncmp(row->key, prefix, strlen(prefix)) == 0 && !row->text && given[i].key.line)
            mistake(mistakes, given[i].key, row->key,
                    "has no effect without cluster.etcd (etcd: [http://HOST:2379])");
    }
    if (!is_set(given, "cluster.etcd"))
        return;
    if (!find(given, "cluster.site")->key.line)
        mistake(mistakes, find(given, "cluster.etcd")->key, "cluster.site",
                "is missing (for example site: yard)");
    check_name(mistakes, given, "cluster.site", config->cluster.site);
    check_name(mistakes, given, "cluster.node", config->cluster.node);
    check_tls(mistakes, config, given);
    check_together(mistakes, given, "cluster.password", "cluster.user",
                   "has no user beside it (user: NAME)");
    check_together(mistakes, given, "cluster.user", "cluster.password",
                   "has no password beside it (password: ${NAME} of a credential)");
    check_cameras(mistakes, config);
}
