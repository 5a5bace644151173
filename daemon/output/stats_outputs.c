#include "daemon/output/stats_outputs.h"

#include "daemon/wire.h"

// Returns the reason to skip the picture, or LOSSES to use it.
static enum loss judge(struct output *output, const struct frame_info *info, bool known)
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
        const enum loss loss = judge(output, info, record != NULL);
        ledger_offer(&output->ledger);
        if (loss != LOSSES) {
            ledger_lose(&output->ledger, loss);
            continue;
        }
        gate_passed(&output->gate, info);
        const bool waits = output->config->overflow == OVERFLOW_WAIT;
        if (scene_lines_add(output->scene, sequence, record, waits ? stop : NULL))
            event_post(events, &output->ready);
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
