#include "config/check_rivals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "config/config.h"
#include "config/object.h"

enum claim_kind { CLAIM_PATH, CLAIM_PORT, CLAIM_URL, CLAIM_MEMORY };

// Resource that one key of an output claims.
struct claim {
    enum claim_kind kind;
    int port;         // CLAIM_PORT only
    const char *text; // path, host, URL or name
    int order;
    const char *camera; // NULL: the output is a batch
    const struct output_config *output;
    const char *key;
};

struct claims {
    struct claim *list;
    int n;
};

static void add_claim(struct claims *claims, struct claim claim, enum claim_kind kind,
                      const char *text, const char *key)
{
    if (!text)
        return;
    claim.kind = kind;
    claim.text = text;
    claim.key = key;
    claim.order = claims->n;
    claims->list[claims->n++] = claim;
}

static void add_sink(struct claims *claims, struct claim claim, const struct sink_address *sink,
                     const char *key)
{
    claim.port = sink->kind == SINK_TCP ? sink->port : 0;
    if (sink->kind == SINK_TCP && sink->port)
        add_claim(claims, claim, CLAIM_PORT, address_host(sink), key);
    else if (sink->kind == SINK_RTSP)
        add_claim(claims, claim, CLAIM_URL, sink->url, key);
    else if (sink->kind != SINK_TCP)
        add_claim(claims, claim, CLAIM_PATH, address_canonical(sink), key);
}

static void add_output(struct claims *claims, const char *camera,
                       const struct output_config *output)
{
    const struct claim claim = {.camera = camera, .output = output};
    add_sink(claims, claim, &output->sink, "sink");
    const enum sink_kind lines = output->detections.sink.kind;
    if (output_config_has_op(output) && lines != SINK_RING && lines != SINK_RTSP) // refused there
        add_sink(claims, claim, &output->detections.sink, "detections.sink");
    add_claim(claims, claim, CLAIM_MEMORY, output->shared.name, "shared");
}

static int compare_claims(const void *left, const void *right)
{
    const struct claim *a = left, *b = right;
    const int text = strcmp(a->text, b->text);
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->port != b->port)
        return a->port < b->port ? -1 : 1;
    return text ? text : a->order - b->order;
}

static void note_rival(struct mistakes *mistakes, const struct claim *claim,
                       const struct claim *rival)
{
    char key[KEY_MAX], name[KEY_MAX];
    const char *what = claim->kind == CLAIM_MEMORY ? "memory" : "sink";
    const struct place at = object_value_place(&output_table, claim->output, claim->key);
    if (claim->camera)
        snprintf(key, sizeof key, "cameras.%s.outputs.%s.%s", claim->camera, claim->output->name,
                 claim->key);
    else
        snprintf(key, sizeof key, "batches.%s.%s", claim->output->name, claim->key);
    if (rival->camera)
        snprintf(name, sizeof name, "cameras.%s.outputs.%s", rival->camera, rival->output->name);
    else
        snprintf(name, sizeof name, "batches.%s", rival->output->name);
    if (rival->output == claim->output)
        mistake(mistakes, at, key, "is the output's own (detections need another)");
    else
        mistake(mistakes, at, key, "is already the %s of %s (each output needs its own)", what,
                name);
}

static const struct claim *earlier(const struct claim *a, const struct claim *b)
{
    return !a || (b && b->order < a->order) ? b : a;
}

// Checks the claims with the kind and port of `from`, and returns their end. Equal texts are
// adjacent; on a port a wildcard address collides with every other.
static const struct claim *check_group(struct mistakes *mistakes, const struct claim *from,
                                       const struct claim *end)
{
    const struct claim *first = NULL, *wildcard = NULL, *same = from, *to = from;
    for (; to < end && to->kind == from->kind && to->port == from->port; to++) {
        first = earlier(first, to);
        if (to->kind == CLAIM_PORT && address_is_wildcard(to->text))
            wildcard = earlier(wildcard, to);
    }
    for (const struct claim *claim = from; claim < to; claim++) {
        if (strcmp(claim->text, same->text) != 0)
            same = claim;
        const bool any = claim->kind == CLAIM_PORT && address_is_wildcard(claim->text);
        const struct claim *rival = any ? first : earlier(same, wildcard);
        if (rival->order < claim->order)
            note_rival(mistakes, claim, rival);
    }
    return to;
}

int check_rivals(struct mistakes *mistakes, const struct config *config)
{
    enum { CLAIMS_OF_ONE = 3 };
    size_t n = (size_t)config->n_batches;
    for (int i = 0; i < config->n_cameras; i++)
        n += (size_t)config->cameras[i].n_outputs;
    struct claims claims = {.list = calloc(n * CLAIMS_OF_ONE + 1, sizeof *claims.list)};
    if (!claims.list)
        return -ENOMEM;
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; o < config->cameras[i].n_outputs; o++)
            if (!config->cameras[i].outputs[o].is_batch)
                add_output(&claims, config->cameras[i].name, &config->cameras[i].outputs[o]);
    for (int i = 0; i < config->n_batches; i++)
        add_output(&claims, NULL, &config->batches[i]);
    qsort(claims.list, (size_t)claims.n, sizeof *claims.list, compare_claims);
    const struct claim *claim = claims.list, *end = claim + claims.n;
    while (claim < end)
        claim = check_group(mistakes, claim, end);
    free(claims.list);
    return 0;
}
