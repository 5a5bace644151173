#include "config/check_nats.h"

#include "config/nats_url.h"

static const struct given *find(const struct given given[], const char *key)
{
    return &given[table_find(&root_table, key) - root_table.rows];
}

static bool is_set(const struct given given[], const char *key)
{
    const struct given *of = find(given, key);
    return of->key.line && !of->wrong;
}

static bool outputs_name_nats(const struct output_config *outputs, int n)
{
    for (int i = 0; i < n; i++)
        if (outputs[i].sink.kind == SINK_NATS || outputs[i].detections.sink.kind == SINK_NATS)
            return true;
    return false;
}

// Whether a URL of NATS servers is anywhere, or may come with a camera while the daemon runs.
static bool names_nats(const struct config *config, const struct given given[])
{
    bool names = find(given, "notify.nats")->key.line || config->cluster.etcd.n > 0 ||
                 config->http_write || outputs_name_nats(config->batches, config->n_batches);
    for (int i = 0; i < config->n_cameras && !names; i++)
        names = outputs_name_nats(config->cameras[i].outputs, config->cameras[i].n_outputs);
    return names;
}

static void refuse_alone(struct mistakes *mistakes, const struct given given[], const char *key)
{
    mistake(mistakes, find(given, key)->key, key,
            "has no effect without a URL of NATS servers (a sink of lines, or notify.nats: "
            "nats://HOST/SUBJECT)");
}

void check_nats(struct mistakes *mistakes, const struct config *config, const struct given given[])
{
    static const char *const keys[] = {"nats.user", "nats.password", "nats.ca"};
    const bool names = names_nats(config, given);
    struct nats_url url;
    for (size_t i = 0; !names && i < sizeof keys / sizeof *keys; i++)
        if (is_set(given, keys[i]))
            refuse_alone(mistakes, given, keys[i]);
    if (!names && is_set(given, "nats.jetstream") && config->nats.jetstream)
        refuse_alone(mistakes, given, "nats.jetstream");
    if (names && is_set(given, "nats.password") && !find(given, "nats.user")->key.line)
        mistake(mistakes, find(given, "nats.password")->key, "nats.password",
                "has no user beside it (user: NAME)");
    const char *wrong = is_set(given, "notify.nats") && config->notify.nats
                            ? nats_url_parse(&url, config->notify.nats)
                            : NULL;
    if (wrong)
        mistake(mistakes, find(given, "notify.nats")->value, "notify.nats",
                "%s (nats://HOST[:PORT][,HOST[:PORT]]/SUBJECT)", wrong);
}
