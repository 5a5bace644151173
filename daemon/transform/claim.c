#include "daemon/transform/claim.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/clock.h"

// Of a claim that failed: no result exists, so that the pool cannot count the loss.
static enum loss loss_of_claim(int rc, const struct claim *claim)
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
        return atomic_load(claim->stop) ? LOSS_STOPPING : LOSS_BACKEND;
    default:
        return LOSS_BACKEND;
    }
}

static void describe_format(struct result *result, const struct op *op, const struct claim *claim)
{
    struct result_format *format = &result->format;
    bool warp = op->kind == OP_WARP;
    op_lay_out(op, &format->image, result->data);
    format->dtype = warp ? op->warp.dtype : DTYPE_U8;
    format->layout = warp ? op->warp.layout : LAYOUT_NCHW;
    format->order = warp ? op->warp.order : ORDER_RGB;
    format->field_order = claim->info->field_order;
    format->rate_num = claim->rate_num;
    format->rate_den = claim->rate_den;
}

static void describe_item(struct item *item, const struct op *op, const struct claim *claim)
{
    item->frame = *claim->info;
    memcpy(item->src_to_dst, op->src_to_dst, sizeof item->src_to_dst);
    memcpy(item->dst_to_src, op->dst_to_src, sizeof item->dst_to_src);
}

// As pool_claim. Consumers may take as long as they like.
static int claim_result(struct output *output, size_t size, struct claim *claim,
                        struct result **ret)
{
    struct pool_request request = {
        .size = size,
        .wait_until_ns = claim->wait_until_ns,
        .stop = claim->interrupted,
    };
    if (output->config->overflow == OVERFLOW_WAIT || monotonic_ns() < claim->wait_until_ns)
        stage_enter(claim->stages, STAGE_SUBMIT, STAGE_NO_LIMIT);
    int rc = pool_claim(output->pool, &request, ret);
    stage_enter(claim->stages, STAGE_SUBMIT, 0);
    claim->opening_ns += request.opening_ns;
    return rc;
}

struct result *claim_frame(const struct subscription *subscription, const struct op *op,
                           struct claim *claim)
{
    struct output *output = subscription->output;
    struct result *result = NULL;
    enum loss reason = LOSS_CONFIG;
    int rc = 0;
    uint64_t sequence = output->sequence++;
    ledger_offer(&output->ledger);
    if (!rate_keeps(&output->rate, claim->info->pts_ns)) {
        ledger_lose(&output->ledger, LOSS_THINNED);
        return NULL;
    }
    uint64_t ordinal = output->ordinal++;
    if (op && frame_is_late(claim->info, output->config->max_age.ns))
        reason = LOSS_LATE;
    else if (op && (rc = claim_result(output, op->dst_bytes, claim, &result)) < 0)
        reason = loss_of_claim(rc, claim);
    if (!result) {
        ledger_lose(&output->ledger, reason);
        return NULL;
    }
    struct item *item = &result->item[subscription->first_item];
    describe_format(result, op, claim);
    rate_limit(&output->rate, &result->format.rate_num, &result->format.rate_den);
    describe_item(item, op, claim);
    item->camera = output->camera;
    item->sequence = sequence;
    item->ordinal = ordinal;
    return result;
}

// Thinned frames are no loss to a client: they take no ordinal.
void claim_lost(const struct subscriptions *outputs, enum loss reason)
{
    for (int i = 0; i < outputs->n_pictures; i++) {
        struct output *output = outputs->list[i].output;
        output->sequence++;
        output->ordinal += reason != LOSS_THINNED;
        ledger_offer(&output->ledger);
        ledger_lose(&output->ledger, reason);
    }
}
