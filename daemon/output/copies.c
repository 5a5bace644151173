#include "daemon/output/copies.h"

#include "daemon/output/packet_queue.h"

void copies_packet(const struct subscriptions *subscriptions, struct event_queue *events,
                   const struct packet *packet, const struct AVCodecParameters *stream,
                   const _Atomic bool *stop, struct stage_watch *stages)
{
    for (int i = subscriptions->n_pools; i < subscriptions->n_packets; i++) {
        struct output *output = subscriptions->list[i].output;
        if (output->config->overflow == OVERFLOW_WAIT)
            stage_enter(stages, STAGE_SUBMIT, STAGE_NO_LIMIT);
        if (packet_queue_add(output->packets, packet, stream, stop))
            event_post(events, &output->ready);
    }
}

int copies_request(const struct subscriptions *subscriptions, int64_t until_ns)
{
    int n = 0;
    for (int i = subscriptions->n_pools; i < subscriptions->n_packets; i++)
        n += packet_queue_request(subscriptions->list[i].output->packets, until_ns);
    return n;
}

bool copies_take_requests(const struct subscriptions *subscriptions)
{
    for (int i = subscriptions->n_pools; i < subscriptions->n_packets; i++)
        if (subscriptions->list[i].output->config->before.ns > 0)
            return true;
    return false;
}
