#include "daemon/transform/claim.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/clock.h"

static enum loss loss_of(int rc, const struct offer *offer)
{
    switch (rc) {
    case -ENOTCONN:
        return LOSS_CLIENT;
    case -EPIPE:
        return LOSS_SINK;
    case -EAGAIN:
        return LOSS_OVERFLOW;
    case -ESHUTDOWN:
        return LOSS_STOPPING;
    case -ECANCELED:
        return atomic_load(offer->stop) ? LOSS_STOPPING : LOSS_BACKEND;
    default:
        return LOSS_BACKEND;
    }
}

static void describe_result(struct result *result, const struct op *op)
{
    static const double identity[6] = {1, 0, 0, 0, 1, 0};
    struct slot_info *info = &result->info;
    bool warp = op->kind == OP_WARP;

    op_lay_out(op, &info->image, result->data);
    memcpy(info->src_to_dst, warp ? op->warp.src_to_dst : identity, sizeof identity);
    memcpy(info->dst_to_src, warp ? op->warp.dst_to_src : identity, sizeof identity);
    info->dtype = warp ? op->warp.dtype : DTYPE_U8;
    info->layout = warp ? op->warp.layout : LAYOUT_NCHW;
    info->order = warp ? op->warp.order : ORDER_RGB;
}

// As pool_claim. Clients may take as long as they like; what is not a wait for them is the opening
// of the pool's memory.
static int wait_and_take(struct output *output, size_t size, struct offer *offer,
                         struct result **result)
{
    const enum overflow overflow = output->config->overflow;
    if (overflow == OVERFLOW_WAIT || monotonic_ns() < offer->wait_until_ns)
        stage_enter(offer->stages, STAGE_SUBMIT, STAGE_NO_LIMIT);
    if (overflow != OVERFLOW_WAIT)
        pool_wait(output->pool, offer->wait_until_ns, offer->interrupted);
    const int64_t begun_ns = monotonic_ns();
    int rc = pool_claim(output->pool, size, overflow, offer->interrupted, result);
    stage_enter(offer->stages, STAGE_SUBMIT, 0);
    if (overflow != OVERFLOW_WAIT)
        offer->opening_ns += monotonic_ns() - begun_ns;
    return rc;
}

// A result for a frame that passed the rate, or why there is none.
static struct result *take_slot(struct output *output, const struct op *op, struct offer *offer,
                                enum loss *reason)
{
    struct result *result;
    *reason = LOSS_CONFIG;
    if (!op)
        return NULL;
    *reason = LOSS_LATE;
    if (frame_is_late(offer->info, output->config->max_age.ns))
        return NULL;
    int rc = wait_and_take(output, op->dst_bytes, offer, &result);
    *reason = loss_of(rc, offer);
    return rc < 0 ? NULL : result;
}

struct result *offer_frame(struct output *output, const struct op *op, struct offer *offer)
{
    enum loss reason;
    uint64_t sequence = output->sequence++;
    ledger_offer(&output->ledger);
    if (!rate_keeps(&output->rate, offer->info->pts_ns)) {
        ledger_lose(&output->ledger, LOSS_THINNED);
        return NULL;
    }
    uint64_t ordinal = output->ordinal++;
    struct result *result = take_slot(output, op, offer, &reason);
    if (!result) {
        ledger_lose(&output->ledger, reason);
        return NULL;
    }
    describe_result(result, op);
    result->info.frame = *offer->info;
    result->info.sequence = sequence;
    result->info.ordinal = ordinal;
    result->info.rate_num = offer->rate_num;
    result->info.rate_den = offer->rate_den;
    rate_limit(&output->rate, &result->info.rate_num, &result->info.rate_den);
    return result;
}

// Thinned frames are no loss to a client: they take no ordinal.
void offer_lost(const struct subscriptions *outputs, enum loss reason)
{
    for (int i = 0; i < outputs->n; i++) {
        struct output *output = outputs->list[i].output;
        output->sequence++;
        output->ordinal += reason != LOSS_THINNED;
        ledger_offer(&output->ledger);
        ledger_lose(&output->ledger, reason);
    }
}
