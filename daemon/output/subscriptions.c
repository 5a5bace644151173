#include "daemon/output/subscriptions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"
#include "config/op.h"

static int subscribe(struct subscriptions *subscriptions, const char *camera,
                     const struct output_config *config, const struct subscriptions *before)
{
    struct subscription *own = &subscriptions->list[subscriptions->n];
    int rc = 0;
    if (config->kernel != KERNEL_COPY)
        output_config_op(config, &own->op);
    own->output = before ? subscriptions_find_same(before, config) : NULL;
    if (!own->output)
        rc = output_open(&own->output, camera, config);
    if (rc < 0)
        return rc;
    own->output->subscribers++;
    subscriptions->n++;
    subscriptions->n_pictures += config->kernel != KERNEL_COPY;
    return 0;
}

int subscriptions_open(struct subscriptions **ret, const char *camera,
                       const struct camera_config *config, const struct subscriptions *before)
{
    const size_t bytes = (size_t)config->n_outputs * sizeof(struct subscription);
    struct subscriptions *subscriptions = calloc(1, sizeof *subscriptions + bytes);
    int rc = subscriptions ? 0 : -ENOMEM;
    for (int copies = 0; copies < 2; copies++)
        for (int i = 0; rc == 0 && i < config->n_outputs; i++)
            if ((config->outputs[i].kernel == KERNEL_COPY) == copies)
                rc = subscribe(subscriptions, camera, &config->outputs[i], before);
    if (rc < 0) {
        if (subscriptions)
            subscriptions_close(subscriptions, output_close);
        return rc;
    }
    subscriptions->references = 1;
    *ret = subscriptions;
    return 0;
}

void subscriptions_close(struct subscriptions *subscriptions, void (*detached)(struct output *))
{
    for (int i = 0; i < subscriptions->n; i++) {
        struct output *output = subscriptions->list[i].output;
        if (--output->subscribers == 0 && detached)
            detached(output);
    }
    free(subscriptions);
}

struct subscriptions *subscriptions_acquire(struct subscriptions *subscriptions)
{
    atomic_fetch_add(&subscriptions->references, 1);
    return subscriptions;
}

bool subscriptions_release(struct subscriptions *subscriptions)
{
    return atomic_fetch_sub(&subscriptions->references, 1) == 1;
}

bool subscriptions_have(const struct subscriptions *subscriptions, const struct output *output)
{
    for (int i = 0; i < subscriptions->n; i++)
        if (subscriptions->list[i].output == output)
            return true;
    return false;
}

struct output *subscriptions_find(const struct subscriptions *subscriptions, const char *name)
{
    for (int i = 0; i < subscriptions->n; i++)
        if (strcmp(subscriptions->list[i].output->config->name, name) == 0)
            return subscriptions->list[i].output;
    return NULL;
}

struct output *subscriptions_find_same(const struct subscriptions *subscriptions,
                                       const struct output_config *config)
{
    struct output *output = subscriptions_find(subscriptions, config->name);
    return output && config_same_output(output->config, config) ? output : NULL;
}
