#include "daemon/work/claim.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/wire.h"

enum loss claim_loss(int rc, bool stopping)
{
    switch (rc) {
    case -ENOTCONN:
        return LOSS_CLIENT;
    case -EPIPE:
        return LOSS_SINK;
    case -EAGAIN:
        return LOSS_OVERFLOW;
    case -ENOSPC:
        return LOSS_CONFIG;
    case -ESHUTDOWN:
        return LOSS_STOPPING;
    case -ECANCELED:
        return stopping ? LOSS_STOPPING : LOSS_BACKEND;
    default:
        return LOSS_BACKEND;
    }
}

struct result_format claim_format(const struct op *op, const struct output *output,
                                  enum field_order fields, int num, int den, void *data)
{
    bool warp = op->kind == OP_WARP;
    struct result_format format = {
        .dtype = warp ? op->warp.dtype : DTYPE_U8,
        .layout = warp ? op->warp.layout : LAYOUT_NCHW,
        .order = warp ? op->warp.order : ORDER_RGB,
        .field_order = fields,
        .rate_num = num,
        .rate_den = den,
    };
    op_lay_out(op, &format.image, data);
    rate_limit(&output->rate, &format.rate_num, &format.rate_den);
    return format;
}

static struct result_format format_of(const struct op *op, const struct output *output,
                                      const struct claim *claim, void *data)
{
    return claim_format(op, output, claim->frame->info.field_order, claim->rate_num,
                        claim->rate_den, data);
}

void claim_describe(struct result *result, int first, const struct elements *elements,
                    const struct output *output, const struct frame_info *info, uint64_t sequence,
                    uint64_t ordinal)
{
    const bool new_epoch = result->item[first].new_epoch;
    const uint64_t lost = result->item[first].lost;
    for (int i = 0; i < elements->n; i++) {
        const struct op *op = &elements->list[i].op;
        struct item *item = &result->item[first + i];
        item->frame = *info;
        item->frame.flags |= new_epoch ? FRAMED_FLAG_FIRST_OF_EPOCH : 0;
        item->lost = lost;
        item->sequence = sequence;
        item->ordinal = ordinal;
        item->parent_sequence = sequence;
        item->object = 0;
        item->part = i;
        item->parts = elements->n;
        strncpy(item->camera, output->camera, sizeof item->camera - 1);
        memset(item->region, 0, sizeof item->region);
        strncpy(item->region, elements->list[i].name, sizeof item->region - 1);
        memcpy(item->src_to_dst, op->src_to_dst, sizeof item->src_to_dst);
        memcpy(item->dst_to_src, op->dst_to_src, sizeof item->dst_to_src);
    }
}

static int claim_result(struct output *output, const struct elements *elements, struct claim *claim,
                        struct result **ret)
{
    struct pool_request request = {
        .size = elements->list[0].op.dst_bytes,
        .items = elements->n,
        .ledger = &output->ledger,
        .wait_until_ns = claim->wait_until_ns,
        .stop = claim->interrupted,
    };
    int rc = pool_claim(output->pool, &request, ret);
    claim->opening_ns += request.opening_ns;
    if (rc == 0)
        (*ret)->format = format_of(&elements->list[0].op, output, claim, (*ret)->data);
    return rc;
}

static int claim_of_batch(struct output *output, const struct elements *elements,
                          struct claim *claim, uint64_t ordinal, struct result **ret)
{
    struct batch_request request = {
        .size = elements->list[0].op.dst_bytes,
        .format = format_of(&elements->list[0].op, output, claim, NULL),
        .parts = elements->n,
        .ordinal = ordinal,
        .epoch = claim->frame->info.epoch,
    };
    memcpy(request.fill, elements->list[0].op.warp.fill_element, sizeof request.fill);
    int first = 0;
    int rc = batch_claim(&output->share, &request, ret, &first);
    claim->opening_ns += request.opening_ns;
    return rc < 0 ? rc : first;
}

// Hands the frame to the batch, which fills its items later. False: the frame cannot be shared.
static bool park(struct output *output, struct claim *claim, int parts, uint64_t sequence,
                 uint64_t ordinal)
{
    struct parked parked = {.sequence = sequence, .ordinal = ordinal};
    if (frame_share(claim->frame, &parked.frame) < 0)
        return false;
    batch_park(&output->share, &parked, parts);
    return true;
}

// Returns the index of the first item, or an error as pool_claim. Waits for consumers without a
// limit, except with batches: transform.c waits for these before it claims anything.
static int claim_items(struct output *output, const struct elements *elements, struct claim *claim,
                       uint64_t ordinal, struct result **ret)
{
    if (output->parent)
        return claim_of_batch(output, elements, claim, ordinal, ret);
    if (output->config->overflow == OVERFLOW_WAIT || monotonic_ns() < claim->wait_until_ns)
        stage_enter(claim->stages, STAGE_SUBMIT, STAGE_NO_LIMIT);
    int rc = claim_result(output, elements, claim, ret);
    stage_enter(claim->stages, STAGE_SUBMIT, 0);
    return rc;
}

int claim_frame(const struct subscription *subscription, const struct elements *elements,
                struct claim *claim, struct result **ret)
{
    struct output *output = subscription->output;
    const struct frame_info *info = &claim->frame->info;
    enum loss reason = LOSS_CONFIG;
    int rc = -1;
    uint64_t sequence = output->sequence++;
    ledger_offer(&output->ledger);
    const bool opens = gate_opens(&output->gate, &output->config->gate, info);
    // A picture behind a closed gate must not delay the first one that passes.
    const bool kept = opens && rate_keeps(&output->rate, info->pts_ns);
    if (!kept) { // no loss to a client: takes no ordinal
        ledger_lose(&output->ledger, opens ? LOSS_THINNED : LOSS_STILL);
        return -1;
    }
    uint64_t ordinal = output->ordinal++;
    if (elements->n > 0 && frame_is_late(info, output->config->max_age.ns)) {
        reason = LOSS_LATE;
    } else if (elements->n > 0) {
        rc = claim_items(output, elements, claim, ordinal, ret);
        const bool parked =
            rc == -EAGAIN && output->parent && park(output, claim, elements->n, sequence, ordinal);
        if (rc >= 0 || parked)
            gate_passed(&output->gate, info);
        if (parked)
            return -1;
        reason = claim_loss(rc, atomic_load(claim->stop));
    }
    if (rc < 0)
        ledger_lose(&output->ledger, reason);
    else
        claim_describe(*ret, rc, elements, output, info, sequence, ordinal);
    return rc < 0 ? -1 : rc;
}

// Counts the result's memory before it is claimed: its slots and, to show a tensor, two copies with
// three bytes a pixel. Returns 0, -EFBIG or -EDQUOT.
static int admit_demand(struct demand *demand, const struct op *op)
{
    const size_t pixels = (size_t)op->dst.width * (size_t)op->dst.height;
    const size_t bytes = DEMAND_SLOTS * op->dst_bytes + (demand->of ? pixels * 2 * 3 : 0);
    if (op->dst.width > DEMAND_SIDE_MAX || op->dst.height > DEMAND_SIDE_MAX)
        return -EFBIG;
    if (bytes == demand->bytes)
        return 0;
    const size_t more = bytes - demand->bytes; // modulo SIZE_MAX + 1
    const size_t all = atomic_fetch_add(demand->taken, more) + more;
    const bool fits = all <= DEMANDS_BYTES_MAX;
    if (!fits)
        atomic_fetch_sub(demand->taken, bytes);
    demand->bytes = fits ? bytes : 0;
    return fits ? 0 : -EDQUOT;
}

int claim_demanded(const struct subscription *subscription, const struct elements *elements,
                   struct claim *claim, uint64_t pictures, struct result **ret)
{
    struct output *output = subscription->output;
    struct demand *demand = output->demand;
    const struct frame_info *info = &claim->frame->info;
    const uint64_t sequence = demand->of ? demand->of->sequence - 1 : pictures;
    const bool due = atomic_exchange(&demand->due, false);
    if (due)
        rate_restart(&output->rate);
    const bool kept = atomic_load(&demand->runs) && rate_keeps(&output->rate, info->pts_ns);
    if (!due && !kept)
        return -EAGAIN;
    int rc = elements->n > 0 ? admit_demand(demand, &elements->list[0].op) : demand->unmade;
    if (rc < 0) {
        atomic_store(&demand->refused, rc);
        return rc;
    }
    struct claim hasty = *claim;
    hasty.wait_until_ns = 0;
    rc = claim_result(output, elements, &hasty, ret);
    claim->opening_ns = hasty.opening_ns;
    if (rc < 0) {
        atomic_store(&demand->due, due);
        return rc;
    }
    demand->source[(*ret)->number] = claim->frame->image;
    claim_describe(*ret, 0, elements, output, info, sequence, sequence);
    return 0;
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
