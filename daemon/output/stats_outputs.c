#include "daemon/output/stats_outputs.h"

// Why the output does without the picture; LOSSES: it wants it.
static enum loss judge(struct output *output, const struct frame_info *info, bool damaged)
{
    const bool opens = gate_opens(&output->gate, &output->config->gate, info);
    if (!rate_keeps(&output->rate, info->pts_ns))
        return LOSS_THINNED;
    return !opens ? LOSS_STILL : damaged ? LOSS_DAMAGED : LOSSES;
}

void stats_outputs_offer(const struct subscriptions *subscriptions, struct event_queue *events,
                         const struct frame_info *info, const struct scene_record *record,
                         const _Atomic bool *stop)
{
    for (int i = subscriptions->n_packets; i < subscriptions->n; i++) {
        struct output *output = subscriptions->list[i].output;
        const uint64_t sequence = output->sequence++;
        const enum loss loss = judge(output, info, !record);
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
