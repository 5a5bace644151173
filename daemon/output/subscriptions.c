#include "daemon/output/subscriptions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/object.h"
#include "daemon/output/packet_queue.h"
#include "daemon/wire.h"

// Shares may differ only in each camera's own settings: the overflow that `auto` chose and the
// position of its regions.
static bool is_same_batch(const struct outlet *batch, const struct output_config *config)
{
    struct output_config shared = *batch->config;
    if (shared.overflow_auto && config->overflow_auto)
        shared.overflow = config->overflow;
    shared.roi.chosen = config->roi.chosen;
    return !batch->finished && strcmp(shared.name, config->name) == 0 &&
           config_same_output(&shared, config);
}

static int open_share(struct output **ret, const char *camera, const struct output_config *config,
                      struct outlet **batches)
{
    struct outlet *batch = *batches;
    while (batch && !is_same_batch(batch, config))
        batch = batch->next;
    int rc = 0;
    if (!batch) {
        rc = outlet_open(&batch, "", config, NULL);
        if (rc < 0)
            return rc;
        batch->next = *batches;
        *batches = batch;
    }
    return output_open(ret, camera, config, batch);
}

enum { PLACE_PICTURES, PLACE_CROPS, PLACE_COPIES, PLACE_LINES, PLACES };

// Returns the place in the list, by the source that fills the output.
static int place_of(const struct output_config *config)
{
    return config->kernel == KERNEL_STATS  ? PLACE_LINES
           : config->kernel == KERNEL_COPY ? PLACE_COPIES
           : config->crops.of              ? PLACE_CROPS
                                           : PLACE_PICTURES;
}

static int subscribe(struct subscriptions *subscriptions, const char *camera,
                     const struct output_config *config, const struct subscriptions *before,
                     struct outlet **batches)
{
    struct subscription *own = &subscriptions->list[subscriptions->n];
    int rc = 0;
    if (output_config_has_op(config))
        output_config_op(config, &own->op);
    own->tiling = (struct tiling){config->tiles.size, config->tiles.overlap.n, config->tiles.full};
    own->output = before ? subscriptions_find_same(before, config) : NULL;
    if (!own->output)
        rc = config->is_batch ? open_share(&own->output, camera, config, batches)
                              : output_open(&own->output, camera, config, NULL);
    if (rc < 0)
        return rc;
    own->output->subscribers++;
    subscriptions->n++;
    subscriptions->n_pictures += place_of(config) == PLACE_PICTURES;
    subscriptions->n_pools += place_of(config) <= PLACE_CROPS;
    subscriptions->n_packets += place_of(config) <= PLACE_COPIES;
    return 0;
}

int subscriptions_open(struct subscriptions **ret, const char *camera,
                       const struct camera_config *config, const struct subscriptions *before,
                       struct outlet **batches)
{
    const size_t bytes = (size_t)config->n_outputs * sizeof(struct subscription);
    struct subscriptions *subscriptions = calloc(1, sizeof *subscriptions + bytes);
    int rc = subscriptions ? 0 : -ENOMEM;
    for (int place = 0; place < PLACES; place++)
        for (int i = 0; rc == 0 && i < config->n_outputs; i++)
            if (place_of(&config->outputs[i]) == place)
                rc = subscribe(subscriptions, camera, &config->outputs[i], before, batches);
    if (rc < 0) {
        if (subscriptions)
            subscriptions_close(subscriptions, output_close);
        return rc;
    }
    subscriptions->references = 1;
    *ret = subscriptions;
    return 0;
}

struct subscriptions *subscriptions_with(const struct subscriptions *base,
                                         const struct subscription *const more[], int n)
{
    struct subscriptions *ret =
        calloc(1, sizeof *ret + (size_t)(base->n + n) * sizeof ret->list[0]);
    if (!ret)
        return NULL;
    for (int i = 0; i < base->n_pictures; i++)
        ret->list[i] = base->list[i];
    for (int i = 0; i < n; i++)
        ret->list[base->n_pictures + i] = *more[i];
    for (int i = base->n_pictures; i < base->n; i++)
        ret->list[i + n] = base->list[i];
    ret->references = 1;
    ret->n = base->n + n;
    ret->n_pictures = base->n_pictures + n;
    ret->n_pools = base->n_pools + n;
    ret->n_packets = base->n_packets + n;
    for (int i = 0; i < ret->n; i++)
        ret->list[i].output->subscribers++;
    return ret;
}

void subscriptions_follow(const struct subscriptions *subscriptions, struct work_queue *work)
{
    for (int i = subscriptions->n_pictures; i < subscriptions->n_pools; i++) {
        const struct output *output = subscriptions->list[i].output;
        struct output *of = subscriptions_find(subscriptions, output->config->crops.of);
        crop_requests_follow(output->requests, of ? of->outlet->results : NULL, work);
    }
}

void subscriptions_close(struct subscriptions *subscriptions, void (*detached)(struct output *))
{
    event_cancel(&subscriptions->released);
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

bool subscriptions_fill(const struct subscriptions *subscriptions, const struct outlet *batch)
{
    for (int i = 0; i < subscriptions->n; i++)
        if (subscriptions->list[i].output->parent == batch)
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

// --- copies of packets

void copies_packet(const struct subscriptions *subscriptions, struct event_queue *events,
                   const struct packet *packet, const struct AVCodecParameters *stream,
                   const _Atomic bool *stop, struct stage_watch *stages)
{
    for (int i = subscriptions->n_pools; i < subscriptions->n_packets; i++) {
        struct output *output = subscriptions->list[i].output;
        if (output->config->overflow == OVERFLOW_WAIT)
            stage_enter(stages, STAGE_SUBMIT, STAGE_NO_LIMIT);
        if (packet_queue_add(output->outlet->packets, packet, stream, stop))
            event_post(events, &output->outlet->ready);
    }
}

int copies_request(const struct subscriptions *subscriptions, int64_t until_ns)
{
    int n = 0;
    for (int i = subscriptions->n_pools; i < subscriptions->n_packets; i++)
        n += packet_queue_request(subscriptions->list[i].output->outlet->packets, until_ns);
    return n;
}

bool copies_take_requests(const struct subscriptions *subscriptions)
{
    for (int i = subscriptions->n_pools; i < subscriptions->n_packets; i++)
        if (subscriptions->list[i].output->config->before.ns > 0)
            return true;
    return false;
}

// --- lines of the analysis

// Returns the reason to skip the picture, or LOSSES to use it.
static enum loss stats_loss(struct output *output, const struct frame_info *info, bool known)
{
    if (!gate_opens(&output->gate, &output->config->gate, info))
        return LOSS_STILL;
    if (!rate_keeps(&output->rate, info->pts_ns))
        return LOSS_THINNED;
    return known                               ? LOSSES
           : info->flags & FRAMED_FLAG_DAMAGED ? LOSS_DAMAGED
           : info->scene.refused               ? LOSS_CONFIG
                                               : LOSS_BACKEND;
}

void stats_outputs_offer(const struct subscriptions *subscriptions, struct event_queue *events,
                         const struct frame_info *info, const struct scene_record *record,
                         const _Atomic bool *stop)
{
    for (int i = subscriptions->n_packets; i < subscriptions->n; i++) {
        struct output *output = subscriptions->list[i].output;
        const uint64_t sequence = output->sequence++;
        const enum loss loss = stats_loss(output, info, record != NULL);
        ledger_offer(&output->ledger);
        if (loss != LOSSES) {
            ledger_lose(&output->ledger, loss);
            continue;
        }
        gate_passed(&output->gate, info);
        const bool waits = output->config->overflow == OVERFLOW_WAIT;
        if (scene_lines_add(output->outlet->scene, sequence, record, waits ? stop : NULL))
            event_post(events, &output->outlet->ready);
    }
}

void stats_outputs_lose(const struct subscriptions *subscriptions, enum loss reason)
{
    for (int i = subscriptions->n_packets; i < subscriptions->n; i++) {
        struct output *output = subscriptions->list[i].output;
        output->sequence++;
        ledger_offer(&output->ledger);
        ledger_lose(&output->ledger, reason);
    }
}
